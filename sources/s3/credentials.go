package s3

import (
	"fmt"
	"strings"
)

// Keys of Secrets.
const (
	keyID     = "accesskey"
	keySecret = "secretkey"
	username  = "username"
	password  = "password"
)

// ParseKeys reads a Secret in Flux's format: accesskey and secretkey. Errors: ErrCredentials, which names keys but shows no values.
func ParseKeys(data map[string][]byte) (Keys, error) {
	keys := Keys{ID: strings.TrimSpace(string(data[keyID])), Secret: strings.TrimSpace(string(data[keySecret]))}
	switch {
	case keys.ID == "" || keys.Secret == "":
		return Keys{}, fmt.Errorf("%w: it needs the keys %s and %s", ErrCredentials, keyID, keySecret)
	case !plain(keys.ID) || strings.Contains(keys.ID, "/"):
		return Keys{}, fmt.Errorf("%w: its %s is no access key", ErrCredentials, keyID)
	}
	return keys, nil
}

// ParseLogin reads a Secret with the username and the password for a Directory. Errors: ErrCredentials.
func ParseLogin(data map[string][]byte) (name, pass string, err error) {
	name, pass = string(data[username]), string(data[password])
	if name == "" || pass == "" {
		return "", "", fmt.Errorf("%w: it needs the keys %s and %s", ErrCredentials, username, password)
	}
	return name, pass, nil
}
