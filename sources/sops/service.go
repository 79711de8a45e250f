package sops

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrService means that a service which holds a key for the file did not open it: another time, or with other credentials, it may.
var ErrService = errors.New("a service did not open an encrypted file")

// Recipient is a key for which a file is encrypted, and which a service holds.
type Recipient struct {
	// Kind is KindAWS or another that is held elsewhere.
	Kind string
	// Fields are what the file says of the key, by the names of SOPS, and Context is what goes with it to the service.
	Fields, Context map[string]string
	// Wrapped is the key of the file, encrypted for the recipient.
	Wrapped string
}

// Service opens what is encrypted for keys that it does not give away.
type Service interface {
	// Unwrap returns the key of a file. Errors: ErrService, ErrNoKey where it has no credentials for such, ErrInvalid for what it
	// never opens. Their texts follow on the name of the recipient.
	Unwrap(ctx context.Context, of Recipient) ([]byte, error)
}

// Serve has a service asked for files that none of the keys opens.
func (k *Keys) Serve(by Service) { k.service = by }

// servicePrefix begins the names in a Secret that are for services, in Flux's format.
const servicePrefix = "sops."

// local reports whether the key of a recipient is in a Secret.
func (r recipient) local() bool { return r.kind == kindAge || r.kind == kindPGP }

// askElsewhere returns the key of a part by services.
func (o *opening) askElsewhere(ctx context.Context, m metadata) ([]byte, error) {
	var why error
	class, text := ErrService, "" // missing credentials, too, are not those of a Secret's own keys
	for _, r := range m.recipients {
		if r.local() {
			continue
		}
		if o.tries--; o.tries < 0 {
			return nil, errTries
		}
		key, err := o.keys.service.Unwrap(ctx, Recipient{Kind: r.kind, Fields: r.fields, Context: r.context, Wrapped: r.wrapped})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && len(key) == keySize:
			return key, nil
		case err == nil:
			err = &fault{ErrService, "what it answers is no key of a file"}
		}
		if weight(err) > weight(why) {
			why, text = err, fmt.Sprintf("it is encrypted for %s: %s", r, err)
		}
	}
	switch {
	case why == nil, m.hasLocal() && weight(why) < asked: // a key in the Secret is what is missing
		return nil, noKey(m)
	case errors.Is(why, ErrInvalid):
		class = ErrInvalid
	}
	return nil, &fault{class, text}
}

func (m metadata) hasLocal() bool { return slices.ContainsFunc(m.recipients, recipient.local) }

// asked is the weight of the error of a service that was asked.
const asked = 3

// weight is higher for the error that says more: what was asked and did not open a file, before what cannot be asked.
func weight(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrInvalid):
		return 1
	case errors.Is(err, ErrNoKey):
		return 2
	default:
		return asked
	}
}
