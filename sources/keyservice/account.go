package keyservice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/sources/cloudtoken"
	"github.com/flotilla-io/flotilla/sources/sops"
)

// Keys of a Secret, in Flux's format, but for the address.
const (
	vaultToken = "sops.vault-token"
	// vaultAddress is ours: the only server that gets the token, whatever files name.
	vaultAddress = "sops.vault-address"
	awsKMS       = "sops.aws-kms"
	gcpKMS       = "sops.gcp-kms"
	azureKV      = "sops.azure-kv"
)

// maxFailures is how many questions without a key are asked for one build: files are written by others. Some are for others, too: all
// of a source may be opened, whatever of it is used.
const maxFailures = 100

// account asks services with the credentials of one Secret, for one build. It is used by one goroutine.
type account struct {
	services *Services
	secret   map[string][]byte
	known    map[string][]byte // keys by what was asked
	failures map[string]error  // and what did not give one
	tokens   map[string]*cloudtoken.Source
	away     map[string]error // what is not asked again, by its host or what tokens are for
}

// For returns what asks services with the credentials of a Secret, for the files of one build.
func (s *Services) For(secret map[string][]byte) sops.Service {
	return &account{services: s, secret: secret, known: map[string][]byte{}, failures: map[string]error{}, tokens: map[string]*cloudtoken.Source{}, away: map[string]error{}}
}

// Unwrap implements sops.Service. The same is asked once.
func (a *account) Unwrap(ctx context.Context, of sops.Recipient) ([]byte, error) {
	by, err := a.served(of.Kind)
	if err != nil {
		return nil, err
	}
	asked := fmt.Sprintf("%q %q %q %q", of.Kind, of.Fields, of.Context, of.Wrapped) // maps print sorted
	if key, found := a.known[asked]; found {
		return slices.Clone(key), nil
	}
	if err, found := a.failures[asked]; found {
		return nil, err
	}
	if len(a.failures) >= maxFailures {
		return nil, refused("it is not asked, as services have opened none of %d others of this revision", maxFailures)
	}
	key, err := by(ctx, of)
	if err != nil {
		if ctx.Err() == nil {
			a.failures[asked] = err
		}
		return nil, err
	}
	a.known[asked] = slices.Clone(key)
	return key, nil
}

// ask sends a request, unless the host has answered none before. See Services.ask.
func (a *account) ask(ctx context.Context, who string, req *http.Request) (answer, error) {
	host := req.URL.Host
	if err := a.away[host]; err != nil {
		return answer{}, err
	}
	said, err := a.services.ask(ctx, who, req)
	var why *refusal
	if errors.As(err, &why) && why.away && ctx.Err() == nil {
		a.away[host] = err
	}
	return said, err
}

// served returns what asks the service of a kind, or why nothing does.
func (a *account) served(kind string) (func(context.Context, sops.Recipient) ([]byte, error), error) {
	var by func(context.Context, sops.Recipient) ([]byte, error)
	name := ""
	switch kind {
	case sops.KindVault:
		by, name = a.askVault, vaultToken
	case sops.KindAWS:
		by, name = a.askAWS, awsKMS
	case sops.KindGCP:
		by, name = a.askGCP, gcpKMS
	case sops.KindAzure:
		by, name = a.askAzure, azureKV
	default:
		return nil, wrong("keys of %s are not supported: add an age or PGP recipient with sops updatekeys", kind)
	}
	if kind != sops.KindVault && !a.services.opts.Clouds {
		return nil, wrong("this flotillad was built without -tags clouds: build it with that, or add an age or PGP recipient with sops updatekeys")
	}
	if strings.TrimSpace(string(a.secret[name])) == "" {
		return nil, missing("it takes credentials as %s", name)
	}
	return by, nil
}
