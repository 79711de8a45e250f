package githubapp

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/internal/privatekey"
)

// Keys of a Secret.
const (
	keyID             = "githubAppID"
	keyPrivate        = "githubAppPrivateKey"
	keyOwner          = "githubAppInstallationOwner"
	keyInstallationID = "githubAppInstallationID"
	keyBaseURL        = "githubAppBaseURL"
)

// publicAPI is where GitHub's own API is.
const publicAPI = "https://api.github.com"

// User is the name that goes with a token where one is asked for.
const User = "x-access-token"

// App is an App and one place where it is installed. It prints as a fixed word.
type App struct {
	id, owner, installation string
	api                     string
	key                     *rsa.PrivateKey
	digest                  [sha256.Size]byte // of all the above
}

// String returns a fixed text, so that the key is not printed.
func (App) String() string { return "(GitHub App)" }

// GoString returns a fixed text, so that the key is not printed.
func (App) GoString() string { return "(GitHub App)" }

// Digest is of all that the App is, its key among it.
func (a App) Digest() [sha256.Size]byte { return a.digest }

// ErrSecret means that the Secret's keys cannot be used.
var ErrSecret = errors.New("unusable GitHub App")

// In reports whether a Secret is one of a GitHub App.
func In(secret map[string][]byte) bool {
	return len(secret[keyID])+len(secret[keyPrivate])+len(secret[keyOwner])+len(secret[keyInstallationID]) > 0
}

var (
	number = regexp.MustCompile(`^[0-9]{1,20}$`)
	// appID is a number or, of newer Apps, a client ID.
	appID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	name  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)
)

// Parse reads a Secret. Errors: ErrSecret, which names keys and no values.
func Parse(secret map[string][]byte) (App, error) {
	text := func(key string) string { return strings.TrimSpace(string(secret[key])) }
	a := App{id: text(keyID), owner: text(keyOwner), installation: text(keyInstallationID), api: publicAPI}
	switch {
	case a.id == "" || text(keyPrivate) == "":
		return App{}, fmt.Errorf("%w: keys %s and %s go together", ErrSecret, keyID, keyPrivate)
	case (a.owner == "") == (a.installation == ""):
		return App{}, fmt.Errorf("%w: exactly one of the keys %s and %s is needed", ErrSecret, keyOwner, keyInstallationID)
	case !appID.MatchString(a.id):
		return App{}, fmt.Errorf("%w: key %s is no ID of an App", ErrSecret, keyID)
	case a.installation != "" && !number.MatchString(a.installation):
		return App{}, fmt.Errorf("%w: key %s is no number", ErrSecret, keyInstallationID)
	case a.owner != "" && !name.MatchString(a.owner):
		return App{}, fmt.Errorf("%w: key %s is no name of an organization or a user", ErrSecret, keyOwner)
	}
	if base := text(keyBaseURL); base != "" {
		u, err := url.Parse(base)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return App{}, fmt.Errorf("%w: key %s is not the https URL of an API, such as https://github.example.com/api/v3", ErrSecret, keyBaseURL)
		}
		a.api = strings.TrimSuffix(u.String(), "/")
	}
	var err error
	if a.key, err = parseKey(secret[keyPrivate]); err != nil {
		return App{}, err
	}
	a.digest = sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", a.id, a.owner, a.installation, a.api, secret[keyPrivate]))
	return a, nil
}

// minBits is the smallest key that is used; GitHub's have 2,048.
const minBits = 2048

func parseKey(text []byte) (*rsa.PrivateKey, error) {
	fault := fmt.Errorf("%w: key %s holds no RSA private key in PEM", ErrSecret, keyPrivate)
	if err := privatekey.CheckText(text); err != nil {
		return nil, fmt.Errorf("%w: key %s: %w", ErrSecret, keyPrivate, err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fault
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		other, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		var ok bool
		if key, ok = other.(*rsa.PrivateKey); err != nil || !ok {
			return nil, fault
		}
	}
	if key.N.BitLen() < minBits {
		return nil, fmt.Errorf("%w: key %s has fewer than %d bits", ErrSecret, keyPrivate, minBits)
	}
	if err := privatekey.CheckBits(key.N.BitLen()); err != nil {
		return nil, fmt.Errorf("%w: key %s: %w", ErrSecret, keyPrivate, err)
	}
	return key, nil
}

const (
	// skew is how much later than ours GitHub's clock may be, and lifetime how long a claim counts: GitHub takes ten minutes.
	skew, lifetime = time.Minute, 8 * time.Minute
)

// claim returns the signed claim to be the App.
func (a App) claim(now time.Time) (string, error) {
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`))
	content, err := json.Marshal(struct {
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
		Issuer  string `json:"iss"`
	}{now.Add(-skew).Unix(), now.Add(lifetime).Unix(), a.id})
	if err != nil {
		return "", err
	}
	signed := head + "." + base64.RawURLEncoding.EncodeToString(content)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
