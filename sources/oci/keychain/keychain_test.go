package keychain_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/oci/keychain"
)

// canary is the secret that must never show.
const canary = "CANARY-4c0d"

// auth is an entry of a configuration.
func auth(host, user, password string) string {
	return fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

// answers are what helpers say, by program and registry.
type answers map[string]string

func (a answers) ask(_ context.Context, program, registry string) ([]byte, error) {
	text, there := a[program+" "+registry]
	switch {
	case !there:
		return nil, &exec.Error{Name: program, Err: exec.ErrNotFound}
	case !strings.HasPrefix(text, "{"):
		return []byte(text), errors.New("exit status 1")
	}
	return []byte(text), nil
}

// TestLogin is about where a login comes from.
func TestLogin(t *testing.T) {
	ann := oci.Login{Username: "ann", Password: canary}
	said := fmt.Sprintf(`{"ServerURL": "x", "Username": "ann", "Secret": %q}`, canary)
	for name, test := range map[string]struct {
		files   map[string]string // below the home
		env     map[string]string // "HOME" in a value stands for the home
		helpers answers
		host    string
		want    oci.Login
		err     string // "HOME" stands for the home
	}{
		"nothing is kept":              {host: "ghcr.io"},
		"docker login has kept it":     {files: map[string]string{".docker/config.json": auth("ghcr.io", "ann", canary)}, host: "ghcr.io", want: ann},
		"for another registry":         {files: map[string]string{".docker/config.json": auth("ghcr.io", "ann", canary)}, host: "quay.io"},
		"Docker Hub by its old name":   {files: map[string]string{".docker/config.json": auth("https://index.docker.io/v1/", "ann", canary)}, host: "index.docker.io", want: ann},
		"$DOCKER_CONFIG comes first":   {files: map[string]string{".docker/config.json": auth("ghcr.io", "bob", "x"), "ci/config.json": auth("ghcr.io", "ann", canary)}, env: map[string]string{"DOCKER_CONFIG": "HOME/ci"}, host: "ghcr.io", want: ann},
		"podman login has kept it":     {files: map[string]string{"run/containers/auth.json": auth("ghcr.io", "ann", canary)}, env: map[string]string{"XDG_RUNTIME_DIR": "HOME/run"}, host: "ghcr.io", want: ann},
		"$REGISTRY_AUTH_FILE names it": {files: map[string]string{"auth.json": auth("ghcr.io", "ann", canary)}, env: map[string]string{"REGISTRY_AUTH_FILE": "HOME/auth.json"}, host: "ghcr.io", want: ann},
		"Podman's folder of the user":  {files: map[string]string{".config/containers/auth.json": auth("ghcr.io", "ann", canary)}, host: "ghcr.io", want: ann},
		"a helper for all registries":  {files: map[string]string{".docker/config.json": `{"credsStore": "pass"}`}, helpers: answers{"docker-credential-pass ghcr.io": said}, host: "ghcr.io", want: ann},
		"a helper for this one":        {files: map[string]string{".docker/config.json": `{"credsStore": "pass", "credHelpers": {"ghcr.io": "gh"}}`}, helpers: answers{"docker-credential-gh ghcr.io": said}, host: "ghcr.io", want: ann},
		"a helper for Docker Hub":      {files: map[string]string{".docker/config.json": `{"credHelpers": {"docker.io": "hub"}}`}, helpers: answers{"docker-credential-hub https://index.docker.io/v1/": said}, host: "index.docker.io", want: ann},
		"a helper that has a token": {files: map[string]string{".docker/config.json": `{"credsStore": "pass"}`},
			helpers: answers{"docker-credential-pass ghcr.io": fmt.Sprintf(`{"Username": "<token>", "Secret": %q}`, canary)}, host: "ghcr.io", want: oci.Login{IdentityToken: canary}},
		"a helper that has none, and the file has": {files: map[string]string{".docker/config.json": strings.Replace(auth("ghcr.io", "ann", canary), "{", `{"credsStore": "pass", `, 1)},
			helpers: answers{"docker-credential-pass ghcr.io": "credentials not found in native keychain\n"}, host: "ghcr.io", want: ann},
		"a helper that is not installed": {files: map[string]string{".docker/config.json": `{"credsStore": "pass"}`}, host: "ghcr.io",
			err: "HOME/.docker/config.json: the credential helper docker-credential-pass is not installed: install it, or take it out of credsStore and credHelpers"},
		"a helper that fails": {files: map[string]string{".docker/config.json": `{"credsStore": "pass"}`}, helpers: answers{"docker-credential-pass ghcr.io": canary}, host: "ghcr.io",
			err: "HOME/.docker/config.json: the credential helper does not tell the login of ghcr.io: see what this says: echo ghcr.io | docker-credential-pass get"},
		"a helper that talks": {files: map[string]string{".docker/config.json": `{"credsStore": "pass"}`}, helpers: answers{"docker-credential-pass ghcr.io": "{" + canary}, host: "ghcr.io",
			err: "HOME/.docker/config.json: the credential helper docker-credential-pass answers with something that is no JSON"},
		"a helper of a path": {files: map[string]string{".docker/config.json": `{"credsStore": "../../bin/sh"}`}, host: "ghcr.io",
			err: `HOME/.docker/config.json: unusable credentials: the credential helper "../../bin/sh" has no name that a program can have`},
		"a file that is no JSON": {files: map[string]string{".docker/config.json": "{" + canary}, host: "ghcr.io",
			err: "unusable credentials: HOME/.docker/config.json is no configuration of Docker in JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for file, content := range test.files {
				at := filepath.Join(home, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			environment := keychain.Environment{Home: home, Ask: test.helpers.ask, Getenv: func(name string) string { return strings.Replace(test.env[name], "HOME", home, 1) }}
			login, err := environment.Login(t.Context(), test.host, "org/app")
			text := ""
			if err != nil {
				text = strings.ReplaceAll(err.Error(), home, "HOME")
			}
			if diff := cmp.Diff(test.err, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if login != test.want {
				t.Errorf("another login: of %q", login.Username)
			}
		})
	}
}

// TestRun runs a real helper.
func TestRun(t *testing.T) {
	bin := t.TempDir()
	const script = "#!/bin/sh\n[ \"$1\" = get ] && printf '{\"Username\": \"ann\", \"Secret\": \"%s\"}' \"$(cat)\"\n"
	if err := os.WriteFile(filepath.Join(bin, "docker-credential-test"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(`{"credHelpers": {"ghcr.io": "test"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	login, err := keychain.Environment{Getenv: func(name string) string { return map[string]string{"DOCKER_CONFIG": home}[name] }}.Login(t.Context(), "ghcr.io", "app")
	if want := (oci.Login{Username: "ann", Password: "ghcr.io"}); err != nil || login != want {
		t.Errorf("of %q, error %v", login.Username, err)
	}
}
