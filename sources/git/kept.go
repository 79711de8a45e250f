package git

import (
	"crypto/sha256"
	"fmt"
	"net/url"

	"k8s.io/utils/lru"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// Kept has what Remotes need again: connections over http(s), by host and
// credentials, and what a server of version 2 said first, by repository. A poll
// takes one request then. All of it may be lost at any time. It may be used from
// several goroutines.
type Kept struct {
	transports *lru.Cache // *egress.Transport by identity
	said       *lru.Cache // *wire.Greeting by identity
}

const (
	// maxTransports is how many hosts, with one identity each, connections are kept
	// to.
	maxTransports = 256
	// maxGreetings is of how many repositories greetings are kept.
	maxGreetings = 4096
)

// NewKept returns an empty Kept.
func NewKept() *Kept {
	return &Kept{
		transports: lru.NewWithEvictionFunc(maxTransports, func(_ lru.Key, value any) { value.(*egress.Transport).CloseIdleConnections() }),
		said:       lru.New(maxGreetings),
	}
}

// identity is a digest of who asks whom: never of one that may see less than
// another.
type identity [sha256.Size]byte

func identityOf(to *url.URL, cred Credentials, proxy *url.URL) identity {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %x %q", to.String(), cred.Username, cred.Password, cred.BearerToken, cred.tlsDigest, proxy))
}

// transport returns the transport for a host and credentials, a new one if none is
// kept.
func (k *Kept) transport(origin *url.URL, cred Credentials, opts Options) *egress.Transport {
	if k == nil {
		return newTransport(origin, cred, opts)
	}
	id := identityOf(&url.URL{Scheme: origin.Scheme, Host: origin.Host}, cred, opts.Proxy)
	if kept, found := k.transports.Get(id); found {
		return kept.(*egress.Transport)
	}
	made := newTransport(origin, cred, opts)
	k.transports.Add(id, made)
	return made
}

// greetings returns what is kept of a repository, nil for nothing.
func (k *Kept) greetings(base *url.URL, cred Credentials, opts Options) *greetings {
	if k == nil {
		return nil
	}
	return &greetings{said: k.said, id: identityOf(base, cred, opts.Proxy), base: *base}
}

// greetings are the greeting of one repository, if there is one. A nil pointer
// keeps none.
type greetings struct {
	said *lru.Cache
	id   identity
	base url.URL
}

func (g *greetings) get() *wire.Greeting {
	if g == nil {
		return nil
	}
	if kept, found := g.said.Get(g.id); found {
		return kept.(*wire.Greeting)
	}
	return nil
}

// keep keeps a greeting that came from an address, nil for none. One that came by
// a redirect is not kept, so that redirects are followed anew; nor are refs.
func (g *greetings) keep(greeting *wire.Greeting, from *url.URL) {
	switch {
	case g == nil:
	case greeting == nil:
		g.said.Remove(g.id)
	case greeting.V2 && *from == g.base:
		g.said.Add(g.id, greeting)
	}
}
