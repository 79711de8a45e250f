package git

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/sources/git/objects"
	"github.com/flotilla-io/flotilla/sources/git/sharing"
	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// Kept has what Remotes need again: connections over http(s), by host and
// credentials, and by repository what a server of version 2 said first, which commits
// refs led to lately, and objects that were transferred. A poll takes one request
// then, or none, and a change what has changed. All of it may be lost at any time. It
// may be used from several goroutines.
type Kept struct {
	transports *lru.Cache // *egress.Transport by identity
	said       *lru.Cache // *wire.Greeting by identity
	resolved   *sharing.Answers[Commit]
	compared   *sharing.Answers[lineage.Relation]
	fetches    *sharing.Turns
	objects    *objects.Store // nil for none
}

// KeptOptions configure a Kept. Zero fields take the default.
type KeptOptions struct {
	// Clock returns the time. Default: the system's.
	Clock clock.PassiveClock
	// Objects is where objects are kept; nil means nowhere.
	Objects *objects.Store
}

const (
	// maxTransports is how many hosts, with one identity each, connections are kept
	// to.
	maxTransports = 256
	// maxGreetings is of how many repositories greetings are kept.
	maxGreetings = 4096
	// maxResolved is of how many refs it is kept where they led to, and of how many pairs
	// of commits how they stand to each other.
	maxResolved = 4096
)

// NewKept returns a Kept, which is empty but for the objects.
func NewKept(opts KeptOptions) *Kept {
	orElse[clock.PassiveClock](&opts.Clock, clock.RealClock{})
	return &Kept{
		transports: lru.NewWithEvictionFunc(maxTransports, func(_ lru.Key, value any) { value.(*egress.Transport).CloseIdleConnections() }),
		said:       lru.New(maxGreetings),
		resolved:   sharing.NewAnswers[Commit](maxResolved, opts.Clock),
		compared:   sharing.NewAnswers[lineage.Relation](maxResolved, opts.Clock),
		fetches:    sharing.NewTurns(),
		objects:    opts.Objects,
	}
}

// identity is a digest of who asks whom: never of one that may see less than
// another.
type identity [sha256.Size]byte

func identityOf(to *url.URL, cred Credentials, proxy *url.URL) identity {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %x %x %q", to.String(), cred.Username, cred.Password, cred.BearerToken, cred.tlsDigest, cred.sshDigest, proxy))
}

// identityOfAll is of a repository, and of all that it is asked with. A GitHub App is
// one whatever its token.
func identityOfAll(r *Remote) identity {
	to, cred := *r.url, r.cred
	to.Path = strings.TrimSuffix(to.Path, "/")
	if to.Scheme != schemeSSH {
		to.User = nil // cred has it, if it counts
	}
	if cred.App != nil {
		digest := cred.App.Digest()
		cred.Password = string(digest[:])
	}
	return identityOf(&to, cred, r.opts.Proxy)
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
