package processors

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

// scramClient is the client side of SCRAM (RFC 5802, without channel binding), which sarama leaves to its users.
//
//	n,,n=user,r=nonce -> r=nonce+,s=salt,i=iterations -> c=biws,r=nonce+,p=proof -> v=signature
type scramClient struct {
	hash         func() hash.Hash
	password     string
	first, nonce string
	serverSigns  []byte
	step         int
}

var _ sarama.SCRAMClient = (*scramClient)(nil)

const minScramIterations = 4096 // RFC 7677

func newScram(mechanism string) *scramClient {
	if mechanism == "SCRAM-SHA-512" {
		return &scramClient{hash: sha512.New}
	}
	return &scramClient{hash: sha256.New}
}

// Begin implements sarama.SCRAMClient.
func (c *scramClient) Begin(user, password, authzID string) error {
	if authzID != "" {
		return errors.New("scram: no authorization id")
	}
	c.password = password
	c.nonce = rand.Text()
	c.first = "n=" + strings.NewReplacer("=", "=3D", ",", "=2C").Replace(user) + ",r=" + c.nonce
	return nil
}

// Step implements sarama.SCRAMClient.
func (c *scramClient) Step(challenge string) (string, error) {
	c.step++
	switch c.step {
	case 1:
		return "n,," + c.first, nil
	case 2:
		return c.prove(challenge)
	case 3:
		want := "v=" + base64.StdEncoding.EncodeToString(c.serverSigns)
		if subtle.ConstantTimeCompare([]byte(challenge), []byte(want)) != 1 {
			return "", fmt.Errorf("scram: the broker did not prove that it knows the password: %.64q", challenge)
		}
		return "", nil
	}
	return "", errors.New("scram: exchange is over")
}

func (c *scramClient) prove(challenge string) (string, error) {
	f := map[string]string{}
	for part := range strings.SplitSeq(challenge, ",") {
		k, v, _ := strings.Cut(part, "=")
		f[k] = v
	}
	salt, err := base64.StdEncoding.DecodeString(f["s"])
	iterations, err2 := strconv.Atoi(f["i"])
	switch {
	case err != nil || err2 != nil:
		return "", fmt.Errorf("scram: challenge %.64q: %w", challenge, errors.Join(err, err2))
	case !strings.HasPrefix(f["r"], c.nonce) || len(f["r"]) == len(c.nonce):
		return "", errors.New("scram: the broker changed the nonce")
	case iterations < minScramIterations:
		return "", fmt.Errorf("scram: %d iterations, at least %d", iterations, minScramIterations)
	}
	salted, err := pbkdf2.Key(c.hash, c.password, salt, iterations, c.hash().Size())
	if err != nil {
		return "", fmt.Errorf("scram: %w", err)
	}
	final := "c=biws,r=" + f["r"]
	message := c.first + "," + challenge + "," + final
	clientKey := c.mac(salted, "Client Key")
	h := c.hash()
	h.Write(clientKey)
	proof := c.mac(h.Sum(nil), message)
	subtle.XORBytes(proof, proof, clientKey)
	c.serverSigns = c.mac(c.mac(salted, "Server Key"), message)
	return final + ",p=" + base64.StdEncoding.EncodeToString(proof), nil
}

func (c *scramClient) mac(key []byte, text string) []byte {
	m := hmac.New(c.hash, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// Done implements sarama.SCRAMClient.
func (c *scramClient) Done() bool { return c.step >= 3 }
