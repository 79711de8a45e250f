package cloudtoken

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"time"

	"github.com/flotilla-io/flotilla/internal/privatekey"
)

// googleServer gives out Google's tokens.
const googleServer = "https://oauth2.googleapis.com/token"

// googleLife is how long what asks for a token is valid.
const googleLife = 10 * time.Minute

// ParseGoogle reads the key of a service account, as gcloud writes it, for a token with a scope. Errors: ErrLogin.
func ParseGoogle(text []byte, scope string) (Login, error) {
	var account struct {
		Type  string `json:"type"`
		Email string `json:"client_email"`
		ID    string `json:"private_key_id"`
		Key   string `json:"private_key"`
	}
	if json.Unmarshal(text, &account) != nil || account.Type != "service_account" || account.Email == "" {
		return Login{}, fmt.Errorf("%w: it has to be the JSON key of a service account, as gcloud iam service-accounts keys create writes it", ErrLogin)
	}
	key, err := googleKey([]byte(account.Key))
	if err != nil {
		return Login{}, err
	}
	return Login{server: googleServer, form: func(now time.Time) (url.Values, error) {
		assertion, err := signed(key, map[string]string{"alg": "RS256", "typ": "JWT", "kid": account.ID}, map[string]any{
			"iss": account.Email, "scope": scope, "aud": googleServer, "iat": now.Unix(), "exp": now.Add(googleLife).Unix(),
		})
		return url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}, err
	}}, nil
}

func googleKey(text []byte) (*rsa.PrivateKey, error) {
	if err := privatekey.CheckText(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLogin, err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%w: its private_key is no PEM", ErrLogin)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, is := parsed.(*rsa.PrivateKey)
	if err != nil || !is {
		return nil, fmt.Errorf("%w: its private_key is no RSA key in PKCS 8", ErrLogin)
	}
	if err := privatekey.CheckBits(key.N.BitLen()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLogin, err)
	}
	return key, nil
}

// signed returns a JSON Web Token.
func signed(key *rsa.PrivateKey, head map[string]string, claims map[string]any) (string, error) {
	one, err := json.Marshal(head)
	if err != nil {
		return "", fmt.Errorf("%w: its private_key_id is no text", ErrLogin)
	}
	two, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("%w: its client_email is no text", ErrLogin)
	}
	text := base64.RawURLEncoding.EncodeToString(one) + "." + base64.RawURLEncoding.EncodeToString(two)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("%w: its private_key does not sign", ErrLogin)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
