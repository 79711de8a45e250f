package oci

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/internal/privatekey"
)

// Login authenticates to a registry. The zero value is anonymous. It prints as a fixed word, so that no log or error shows it
// by accident.
type Login struct {
	// Username and Password are for basic authentication, and for a server of tokens.
	Username, Password string
	// IdentityToken is exchanged for tokens; RegistryToken is one.
	IdentityToken, RegistryToken string
}

// String returns a fixed text, so that the content is not printed.
func (Login) String() string { return "(login)" }

// GoString returns a fixed text, so that the content is not printed.
func (Login) GoString() string { return "(login)" }

func (l Login) anonymous() bool { return l == Login{} }

// Logins are those of one or more Secrets, each for a registry, or for repositories of one.
type Logins struct{ all []login }

type login struct {
	host, path string
	Login
}

// dockerConfig is the format of the Secrets, which is that of Docker's files.
type dockerConfig struct {
	Auths map[string]struct {
		Username      string `json:"username"`
		Password      string `json:"password"`
		Auth          string `json:"auth"`
		IdentityToken string `json:"identitytoken"`
		RegistryToken string `json:"registrytoken"`
	} `json:"auths"`
}

// Keys of Secrets.
const (
	configKey    = ".dockerconfigjson"
	oldConfigKey = ".dockercfg"
)

// HasLogins reports whether a Secret is such as Add reads.
func HasLogins(data map[string][]byte) bool {
	return data[configKey] != nil || data[oldConfigKey] != nil
}

// Add adds the logins of a Secret. Errors: ErrCredentials, which names keys but shows no values.
func (l *Logins) Add(data map[string][]byte) error {
	content, is := data[configKey]
	var config dockerConfig
	err := json.Unmarshal(content, &config)
	if old, isOld := data[oldConfigKey]; !is && isOld {
		is, err = true, json.Unmarshal(old, &config.Auths)
	}
	switch {
	case !is:
		return fmt.Errorf("%w: it has no key %s: kubectl create secret docker-registry makes one that has", ErrCredentials, configKey)
	case err != nil:
		return fmt.Errorf("%w: its key %s is no configuration of Docker in JSON", ErrCredentials, configKey)
	}
	for at, entry := range config.Auths {
		own := Login{Username: entry.Username, Password: entry.Password, IdentityToken: entry.IdentityToken, RegistryToken: entry.RegistryToken}
		if entry.Auth != "" {
			text, err := base64.StdEncoding.DecodeString(entry.Auth)
			if err != nil {
				if text, err = base64.RawStdEncoding.DecodeString(entry.Auth); err != nil {
					return fmt.Errorf("%w: the auth of a registry in %s is not base64", ErrCredentials, configKey)
				}
			}
			name, password, found := strings.Cut(strings.TrimRight(string(text), "\x00"), ":")
			if !found {
				return fmt.Errorf("%w: the auth of a registry in %s is not the base64 of username:password", ErrCredentials, configKey)
			}
			own.Username, own.Password = name, password
		}
		host, below := place(at)
		l.all = append(l.all, login{host, below, own})
	}
	// The longest path counts, and a name more than a pattern; all else the same whatever the order of the map.
	slices.SortStableFunc(l.all, func(a, b login) int {
		if n := len(b.path) - len(a.path); n != 0 {
			return n
		}
		if n := strings.Count(a.host, "*") - strings.Count(b.host, "*"); n != 0 {
			return n
		}
		return strings.Compare(a.host+"/"+a.path, b.host+"/"+b.path)
	})
	return nil
}

// hub are the names that Docker Hub goes by.
var hub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// place returns the registry, and the path of repositories, that an entry is for.
func place(at string) (host, below string) {
	at = strings.TrimPrefix(strings.TrimPrefix(at, "https://"), "http://")
	host, below, _ = strings.Cut(strings.TrimSuffix(at, "/"), "/")
	if below == "v1" || below == "v2" {
		below = ""
	}
	if slices.Contains(hub, host) {
		host = hub[1]
	}
	return strings.ToLower(host), below
}

// For returns the login for a repository of a registry; the zero value if there is none.
func (l *Logins) For(host, repo string) Login {
	host, _ = place(host)
	for _, entry := range l.all {
		below := entry.path == "" || repo == entry.path || strings.HasPrefix(repo, entry.path+"/")
		if below && sameHost(entry.host, host) {
			return entry.Login
		}
	}
	return Login{}
}

// sameHost reports whether a host is meant by an entry, which may have a "*" within each part of the name.
func sameHost(pattern, host string) bool {
	wants, has := strings.Split(pattern, "."), strings.Split(host, ".")
	return len(wants) == len(has) && !slices.ContainsFunc(wants, func(want string) bool {
		match, err := path.Match(want, has[0])
		has = has[1:]
		return err != nil || !match
	})
}

// ParseTLS reads a Secret with a client certificate, an authority, or both. Errors: ErrCredentials.
func ParseTLS(data map[string][]byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	cert, key, authority := data["tls.crt"], data["tls.key"], data["ca.crt"]
	if len(cert)+len(key)+len(authority) == 0 {
		return nil, fmt.Errorf("%w: it has none of ca.crt, and tls.crt with tls.key", ErrCredentials)
	}
	if (len(cert) == 0) != (len(key) == 0) {
		return nil, fmt.Errorf("%w: tls.crt and tls.key are needed together", ErrCredentials)
	}
	if len(cert) > 0 {
		if err := privatekey.CheckText(key); err != nil {
			return nil, fmt.Errorf("%w: tls.key: %w", ErrCredentials, err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%w: tls.crt and tls.key are no certificate with its key", ErrCredentials)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if len(authority) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authority) {
			return nil, fmt.Errorf("%w: ca.crt is no certificate in PEM", ErrCredentials)
		}
	}
	return config, nil
}
