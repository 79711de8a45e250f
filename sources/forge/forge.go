package forge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/sources/git"
)

// What callers branch on, with egress.ErrNotAllowed. An error that is none of these,
// nor a RateLimitError, is a fault that may pass.
var (
	// ErrProvider says that the type, address or Secret cannot be used.
	ErrProvider = errors.New("unusable provider")
	// ErrStatus says that the status itself is malformed, or was refused.
	ErrStatus = errors.New("status refused")
	// ErrUnauthorized says that the token is wrong, or may not write statuses.
	ErrUnauthorized = errors.New("access denied")
	// ErrNotFound says that the forge has no such repository or commit.
	ErrNotFound = errors.New("repository or commit not found")
	// ErrNoPullRequest says that no pull request brought a commit, as far as the forge knows.
	ErrNoPullRequest = errors.New("no pull request brought the commit")
)

// RateLimitError says that the forge wants to be left alone for a while.
type RateLimitError struct {
	// After is how long; at least a second and at most an hour.
	After time.Duration
}

// Error says so.
func (e *RateLimitError) Error() string {
	return fmt.Sprintf("rate limit reached, try again in %s", e.After)
}

// State is what a status says.
type State string

// The states that every forge knows in some form.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// Status is what to say about a commit.
type Status struct {
	// Commit is the full hash, in lower-case hex.
	Commit string
	// Context names who says it; statuses with the same context replace each
	// other. Forges compare contexts without case, so they are sent in lower
	// case.
	Context string
	// State is Pending, Success or Failure.
	State State
	// Description is a line for people. It is cut at 140 characters, which is
	// what GitHub takes.
	Description string
	// TargetURL is where to read more; empty, or anything but http(s), is left out.
	TargetURL string
}

// Poster puts a status on a commit. Errors: the sentinels of this package, a
// RateLimitError, or a fault that may pass.
type Poster interface {
	Post(ctx context.Context, status Status) error
}

// Provider says where statuses go: the fields of a Flux Provider, and the data
// of the Secrets that it names.
type Provider struct {
	// Type is github, gitlab, gitea, bitbucket (Cloud), bitbucketserver (Data Center),
	// azuredevops or git-notes.
	Type string
	// Address is the repository's, as in a browser or for a clone over HTTP; for
	// git-notes, any for a clone.
	Address string
	// Secret has the key token; for git-notes, the keys of a GitRepository's. For both
	// kinds of Bitbucket token may be user:password, or there are username and password.
	Secret map[string][]byte
	// Certificates has ca.crt, and tls.crt with tls.key; it may be nil.
	Certificates map[string][]byte
}

// TypeGitNotes is the Provider type that writes notes to refs/notes/flotilla.
const TypeGitNotes = "git-notes"

// Options configure a Poster. Zero fields take the default.
type Options struct {
	// Timeout bounds each post. Default 15 s, which is Flux's.
	Timeout time.Duration
	// Clock dates Git notes. Default the system's.
	Clock clock.PassiveClock
	// Author signs Git notes. Default "Flotilla <flotilla@localhost>".
	Author string
	// Egress opens connections. Its zero value reaches public addresses only.
	Egress egress.Dialer
}

const defaultTimeout = 15 * time.Second

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// New returns the Poster of a provider. Errors: ErrProvider.
func New(p Provider, opts Options) (Poster, error) {
	opts = opts.withDefaults()
	if p.Type == TypeGitNotes {
		return newNotes(p, opts)
	}
	client, at, err := connect(p, opts)
	if err != nil {
		return nil, err
	}
	return &poster{client: client, place: at}, nil
}

// connect returns what asks the forge of a provider, and where that has the repository.
func connect(p Provider, opts Options) (*client, place, error) {
	opts = opts.withDefaults()
	dialect, known := dialects[p.Type]
	if !known {
		return nil, place{}, fmt.Errorf("%w: type %q has no commit statuses here; use github, gitlab, gitea, bitbucket, bitbucketserver, azuredevops or %s", ErrProvider, p.Type, TypeGitNotes)
	}
	host, parts, err := parseAddress(p.Address)
	if err != nil {
		return nil, place{}, err
	}
	at, found := dialect.place(host, parts)
	if !found {
		return nil, place{}, fmt.Errorf("%w: address %q must %s", ErrProvider, git.MaskURL(p.Address), dialect.form)
	}
	client, err := newClient(p, dialect, host.Host+"/"+strings.Join(parts, "/"), opts)
	return client, at, err
}

// parseAddress returns the server of a repository's address, and the parts of its path:
// two at least.
func parseAddress(address string) (*url.URL, []string, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, nil, fmt.Errorf("%w: address %q is not the https URL of a repository", ErrProvider, git.MaskURL(address))
	}
	repository := strings.Split(strings.Trim(strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git"), "/"), "/")
	if len(repository) < 2 || slices.Contains(repository, "") || slices.Contains(repository, "..") || slices.Contains(repository, ".") {
		return nil, nil, fmt.Errorf("%w: address %q must name an owner and a repository", ErrProvider, git.MaskURL(address))
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, repository, nil
}

// maxDescription is what GitHub takes, in characters; others take more.
const maxDescription = 140

// maxContext is what GitLab's column takes, in characters.
const maxContext = 255

var commitHash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// clean returns the status as forges take it.
func (s Status) clean() (Status, error) {
	if !commitHash.MatchString(s.Commit) {
		return s, fmt.Errorf("%w: commit %q is not a full hash", ErrStatus, s.Commit)
	}
	if s.State != Pending && s.State != Success && s.State != Failure {
		return s, fmt.Errorf("%w: unknown state %q", ErrStatus, s.State)
	}
	s.Context = excerpt.Runes(strings.ToLower(excerpt.Line(s.Context)), maxContext)
	if s.Context == "" {
		return s, fmt.Errorf("%w: the context is empty", ErrStatus)
	}
	s.Description = excerpt.Runes(excerpt.Line(s.Description), maxDescription)
	if u, err := url.Parse(s.TargetURL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		s.TargetURL = ""
	} else {
		u.User = nil
		s.TargetURL = u.String()
	}
	return s, nil
}
