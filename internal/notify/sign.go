package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const minSecret = 24 // bytes, as Standard Webhooks asks

// parseSecret reads a signing key: whsec_ and base64, or plain text.
func parseSecret(s string) ([]byte, error) {
	key := []byte(s)
	if b64, ok := strings.CutPrefix(s, "whsec_"); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(b64); err != nil {
			return nil, errors.New("whsec_ is not followed by base64")
		}
	}
	if len(key) < minSecret {
		return nil, fmt.Errorf("%d bytes, at least %d", len(key), minSecret)
	}
	return key, nil
}

// sign is the webhook-signature of a message.
func sign(key []byte, id, timestamp string, body []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(id + "." + timestamp + "."))
	m.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
}
