// Functions that verify a delivery: the signature with any live secret, and its age. Each is what a
// person pastes into a receiver as it is.

interface VerifySnippet {
  id: string;
  label: string;
  text: string;
}

const NODE = `import { createHmac, timingSafeEqual } from 'node:crypto';

/** @param {Buffer} body the body as it was received */
export function isFromMillrace(body, header, secret, now = Date.now()) {
  const parts = header.split(',').map((part) => part.split('='));
  const t = Number(parts.find(([name]) => name === 't')?.[1]);
  if (!(Math.abs(now / 1000 - t) <= 300)) return false;
  const wanted = createHmac('sha256', secret).update(\`\${t}.\`).update(body).digest();
  return parts.some(([name, value = '']) => {
    const given = Buffer.from(value, 'hex');
    return name === 'v1' && given.length === wanted.length && timingSafeEqual(given, wanted);
  });
}
`;

const PYTHON = `import hashlib, hmac, time

def is_from_millrace(body: bytes, header: str, secret: str, now: float | None = None) -> bool:
    """body is the body as it was received."""
    parts = [part.partition("=") for part in header.split(",")]
    t = next((value for name, _, value in parts if name == "t"), "")
    if not t.isdigit() or abs((now or time.time()) - int(t)) > 300:
        return False
    wanted = hmac.new(secret.encode(), f"{t}.".encode() + body, hashlib.sha256).hexdigest()
    return any(name == "v1" and hmac.compare_digest(value, wanted) for name, _, value in parts)
`;

const GO = `package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
)

// IsFromMillrace takes the body as it was received.
func IsFromMillrace(body []byte, header, secret string, now time.Time) bool {
	var t string
	var given [][]byte
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(part, "=")
		if name == "t" {
			t = value
		} else if sum, err := hex.DecodeString(value); name == "v1" && err == nil {
			given = append(given, sum)
		}
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil || math.Abs(float64(now.Unix()-seconds)) > 300 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	wanted := mac.Sum(nil)
	for _, sum := range given {
		if hmac.Equal(sum, wanted) {
			return true
		}
	}
	return false
}
`;

export const VERIFY_CODE: readonly [VerifySnippet, ...VerifySnippet[]] = [
  { id: 'node', label: 'Node.js', text: NODE },
  { id: 'python', label: 'Python', text: PYTHON },
  { id: 'go', label: 'Go', text: GO },
];
