package keychain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"github.com/flotilla-io/flotilla/sources/oci"
)

const (
	// program is how the programs of helpers begin.
	program = "docker-credential-"
	// none is what helpers say that have no login for a registry.
	none = "credentials not found in native keychain"
	// asToken is the username of a login that is a token of the user's identity.
	asToken = "<token>"
	// mostAnswer is how much of what a helper says is read, in bytes.
	mostAnswer = 1 << 20
)

// helpers are the names that helpers may have: that of another file is none.
var helpers = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ask asks a helper for the login of a host; the zero value if it has none.
func (e Environment) ask(ctx context.Context, helper, host string) (oci.Login, error) {
	if !helpers.MatchString(helper) {
		return oci.Login{}, fmt.Errorf("%w: the credential helper %q has no name that a program can have", oci.ErrCredentials, helper)
	}
	run := e.Ask
	if run == nil {
		run = Run
	}
	registry := names(host)[0]
	answer, err := run(ctx, program+helper, registry)
	switch {
	case ctx.Err() != nil:
		return oci.Login{}, ctx.Err()
	case err != nil && strings.Contains(string(answer), none):
		return oci.Login{}, nil
	case errors.Is(err, exec.ErrNotFound):
		return oci.Login{}, fmt.Errorf("the credential helper %s is not installed: install it, or take it out of credsStore and credHelpers", program+helper)
	case err != nil:
		return oci.Login{}, fmt.Errorf("the credential helper does not tell the login of %s: see what this says: echo %s | %s get", host, registry, program+helper)
	}
	var login struct{ Username, Secret string }
	if json.Unmarshal(answer, &login) != nil {
		return oci.Login{}, fmt.Errorf("the credential helper %s answers with something that is no JSON", program+helper)
	}
	if login.Username == asToken {
		return oci.Login{IdentityToken: login.Secret}, nil
	}
	return oci.Login{Username: login.Username, Password: login.Secret}, nil
}

// Run runs the program of a credential helper, and returns what it prints. Errors: that it is not there, or has failed.
func Run(ctx context.Context, program, registry string) ([]byte, error) {
	var out bounded
	cmd := exec.CommandContext(ctx, program, "get")
	cmd.Stdin, cmd.Stdout = strings.NewReader(registry), &out
	err := cmd.Run()
	return out.Bytes(), err
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

// Write takes everything, and forgets what is too much.
func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:max(min(len(p), mostAnswer-b.Len()), 0)])
	return len(p), nil
}
