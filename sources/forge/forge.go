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
	"github.com/flotilla-io/flotilla/sources/githubapp"
)

// Errors that callers distinguish, besides egress.ErrNotAllowed. Any other error,
// except a RateLimitError, is a transient fault.
var (
	// ErrProvider means that the type, address or Secret cannot be used.
	ErrProvider = errors.New("unusable provider")
	// ErrStatus means that the status is malformed, or that the forge refused it.
	ErrStatus = errors.New("status refused")
	// ErrUnauthorized means that the token is invalid, or lacks the right to
	// write.
	ErrUnauthorized = errors.New("access denied")
	// ErrNotFound means that the forge has no such repository or commit.
	ErrNotFound = errors.New("repository or commit not found")
	// ErrNoPullRequest means that the forge knows no pull request that brought the
	// commit.
	ErrNoPullRequest = errors.New("no pull request brought the commit")
)

// RateLimitError means that the forge refuses requests for a while.
type RateLimitError struct {
	// After is how long to wait: at least a second and at most an hour.
	After time.Duration
}

// Error implements error.
func (e *RateLimitError) Error() string {
	return fmt.Sprintf("rate limit reached, try again in %s", e.After)
}

// State is the state of a commit status.
type State string

// The states that every forge knows in some form.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// Status is a commit status.
type Status struct {
	// Commit is the full hash, in lower-case hex.
	Commit string
	// Context names the source of the status; statuses with the same context
	// replace each other. Forges compare contexts without regard to case, so they
	// are sent in lower case.
	Context string
	// State is Pending, Success or Failure.
	State State
	// Description is one line of text. It is truncated to 140 characters, which is
	// GitHub's limit, and in a note of Git to 1,000.
	Description string
	// TargetURL links to details. It is omitted if it is empty or not http(s).
	TargetURL string
}

// Poster sets a status on a commit. Errors: the sentinels of this package, a
// RateLimitError, or a transient fault.
type Poster interface {
	Post(ctx context.Context, status Status) error
}

// Provider is where statuses go: the fields of a Flux Provider, and the data of
// the Secrets that it refers to.
type Provider struct {
	// Type is github, gitlab, gitea, bitbucket (Cloud), bitbucketserver (Data Center),
	// azuredevops or git-notes.
	Type string
	// Address is the repository's address, as in a browser or for cloning over
	// HTTP; for git-notes, any address for cloning.
	Address string
	// Secret has the key token, or for github those of a GitHub App; for git-notes, the keys of a GitRepository's
	// Secret. For both kinds of Bitbucket, token may be <user>:<password>, or the
	// Secret has username and password.
	Secret map[string][]byte
	// Certificates has ca.crt, and tls.crt with tls.key; it may be nil.
	Certificates map[string][]byte
}

// typeGitHub is the Provider type of GitHub, where Apps are.
const typeGitHub = "github"

// typeGitea is the Provider type of Gitea and Forgejo.
const typeGitea = "gitea"

// TypeGitNotes is the Provider type that writes notes to refs/notes/flotilla.
const TypeGitNotes = "git-notes"

// Options configure a Poster or a Commenter. Zero fields take the default.
type Options struct {
	// Timeout bounds each operation. Default 15 s, which is Flux's.
	Timeout time.Duration
	// Clock returns the time that Git notes are dated with. Default: the system's.
	Clock clock.PassiveClock
	// Author is the author of Git notes. Default "Flotilla <flotilla@localhost>".
	Author string
	// Tokens gets tokens of GitHub Apps. Default: of each client's own.
	Tokens *githubapp.Tokens
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
	if o.Tokens == nil {
		o.Tokens = githubapp.NewTokens(o.Clock)
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

// connect returns the client of a provider's forge, and the addresses of its
// repository.
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

// parseAddress returns the server of a repository's address, and the segments of
// its path, at least two.
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

// maxDescription is GitHub's limit of a description, in characters; others allow
// more.
const maxDescription = 140

// maxNote bounds the description in a note of Git.
const maxNote = 1000

// maxContext is the size of GitLab's database column, in characters.
const maxContext = 255

var commitHash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// clean returns the status as forges accept it, with a description of so many characters at most, or an ErrStatus.
func (s Status) clean(longest int) (Status, error) {
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
	s.Description = excerpt.Runes(excerpt.Line(s.Description), longest)
	if u, err := url.Parse(s.TargetURL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		s.TargetURL = ""
	} else {
		u.User = nil
		s.TargetURL = u.String()
	}
	return s, nil
}
