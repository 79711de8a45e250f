package keychain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flotilla-io/flotilla/sources/oci"
)

// Environment is that of a user. The zero value has no logins.
type Environment struct {
	// Home is the user's folder; empty for none.
	Home string
	// Getenv returns a variable of the environment; nil means that there are none.
	Getenv func(name string) string
	// Ask runs a credential helper, given as the name of its program, with what a registry is called by it; nil means Run.
	Ask func(ctx context.Context, program, registry string) ([]byte, error)
}

func (e Environment) variable(name string) string {
	if e.Getenv == nil {
		return ""
	}
	return e.Getenv(name)
}

// files are where the configuration may be; the first that there is counts.
func (e Environment) files() []string {
	below := func(folder string, names ...string) string {
		if folder == "" {
			return ""
		}
		return filepath.Join(append([]string{folder}, names...)...)
	}
	docker := e.variable("DOCKER_CONFIG")
	if docker == "" {
		docker = below(e.Home, ".docker")
	}
	own := e.variable("XDG_CONFIG_HOME")
	if own == "" {
		own = below(e.Home, ".config")
	}
	return []string{
		below(docker, "config.json"),
		e.variable("REGISTRY_AUTH_FILE"),
		below(e.variable("XDG_RUNTIME_DIR"), "containers", "auth.json"),
		below(own, "containers", "auth.json"),
	}
}

// config is what is read of a configuration, besides the logins themselves.
type config struct {
	Store   string            `json:"credsStore"`
	Helpers map[string]string `json:"credHelpers"`
}

// Login returns the login for a repository of a registry; the zero value if there is none. Errors: a configuration that cannot be
// read, a credential helper that does not work, and oci.ErrCredentials.
func (e Environment) Login(ctx context.Context, host, repository string) (oci.Login, error) {
	for _, file := range e.files() {
		if file == "" {
			continue
		}
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return oci.Login{}, fmt.Errorf("read the logins: %w", err)
		}
		return e.from(ctx, file, content, [2]string{host, repository})
	}
	return oci.Login{}, nil
}

// from looks into a configuration for a repository of a host.
func (e Environment) from(ctx context.Context, file string, content []byte, of [2]string) (oci.Login, error) {
	var c config
	if json.Unmarshal(content, &c) != nil {
		return oci.Login{}, fmt.Errorf("%w: %s is no configuration of Docker in JSON", oci.ErrCredentials, file)
	}
	helper := c.Store
	for _, name := range names(of[0]) {
		if own := c.Helpers[name]; own != "" {
			helper = own
			break
		}
	}
	if helper != "" {
		login, err := e.ask(ctx, helper, of[0])
		if err != nil {
			return oci.Login{}, fmt.Errorf("%s: %w", file, err)
		}
		if login != (oci.Login{}) {
			return login, nil
		}
	}
	var logins oci.Logins
	if err := logins.Add(map[string][]byte{".dockerconfigjson": content}); err != nil {
		return oci.Login{}, fmt.Errorf("%s: %w", file, err)
	}
	return logins.For(of[0], of[1]), nil
}

const (
	dockerHub = "index.docker.io"
	// dockerHubKey is what Docker's clients call it.
	dockerHubKey = "https://index.docker.io/v1/"
)

// names are what a registry may be called.
func names(host string) []string {
	if host == dockerHub {
		return []string{dockerHubKey, "docker.io", host}
	}
	return []string{host}
}
