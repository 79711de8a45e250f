package forge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Comment is what to say under the pull request that brought a commit.
type Comment struct {
	// Commit is the full hash, in lower-case hex.
	Commit string
	// Key distinguishes the comment from others. Nobody but the caller is to know it, so that nobody can write a
	// comment that is taken for this one.
	Key string
	// Body is Markdown. It is taken as it is.
	Body string
	// At is where the comment stands; zero where that is not known.
	At CommentRef
}

// CommentRef says where a comment stands.
type CommentRef struct {
	PullRequest int64
	ID          int64
}

// Commenter keeps one comment under the pull request that brought a commit: it writes it, and edits it from
// then on. It returns where it stands. Errors: the sentinels of this package, a RateLimitError, or a fault
// that may pass.
type Commenter interface {
	Comment(ctx context.Context, c Comment) (CommentRef, error)
}

// commenting is how one kind of forge wants comments.
type commenting struct {
	// dialect is the Provider type of its statuses.
	dialect string
	// pulls is where the pull requests of a commit are, below the repository.
	pulls func(commit string) string
	// merged finds the pull request among what is answered; 0 for none.
	merged func(text []byte, commit string) (int64, error)
	// list is where comments are listed and made, and edit where one is edited, below the repository.
	list func(number int64) string
	edit func(at CommentRef) (method, path string)
	// pages is the query for a page of perPage comments, less its number; empty where a list has all.
	pages string
}

const perPage = 100 // as pages asks for

// commentings by Provider type, which are Flux's.
var commentings = map[string]commenting{
	"githubpullrequestcomment": {
		dialect: "github", pages: "?per_page=100&page=",
		pulls:  func(commit string) string { return "/commits/" + commit + "/pulls" },
		merged: mergedOf[githubPull], list: issueComments, edit: issueComment,
	},
	"giteapullrequestcomment": {
		dialect: "gitea",
		pulls:   func(commit string) string { return "/commits/" + commit + "/pull" },
		merged: func(text []byte, _ string) (int64, error) {
			var one githubPull
			err := json.Unmarshal(text, &one)
			return one.Number, err
		},
		list: issueComments, edit: issueComment,
	},
	"gitlabmergerequestcomment": {
		dialect: "gitlab", pages: "?sort=asc&per_page=100&page=",
		pulls:  func(commit string) string { return "/repository/commits/" + commit + "/merge_requests" },
		merged: mergedOf[gitlabMerge],
		list:   func(number int64) string { return fmt.Sprintf("/merge_requests/%d/notes", number) },
		edit: func(at CommentRef) (string, string) {
			return http.MethodPut, fmt.Sprintf("/merge_requests/%d/notes/%d", at.PullRequest, at.ID)
		},
	},
}

func issueComments(number int64) string { return fmt.Sprintf("/issues/%d/comments", number) }

func issueComment(at CommentRef) (string, string) {
	return http.MethodPatch, fmt.Sprintf("/issues/comments/%d", at.ID)
}

// pull is a pull request as a forge lists it.
type pull interface {
	// brought reports whether it was merged, and whether as the commit itself.
	brought(commit string) (merged, itself bool)
	number() int64
}

type githubPull struct {
	Number      int64  `json:"number"`
	MergedAt    string `json:"merged_at"`
	MergeCommit string `json:"merge_commit_sha"`
}

func (p githubPull) brought(commit string) (bool, bool) {
	return p.MergedAt != "", p.MergeCommit == commit
}
func (p githubPull) number() int64 { return p.Number }

type gitlabMerge struct {
	IID          int64  `json:"iid"`
	State        string `json:"state"`
	MergeCommit  string `json:"merge_commit_sha"`
	SquashCommit string `json:"squash_commit_sha"`
}

func (m gitlabMerge) brought(commit string) (bool, bool) {
	return m.State == "merged", m.MergeCommit == commit || m.SquashCommit == commit
}
func (m gitlabMerge) number() int64 { return m.IID }

// mergedOf finds the pull request that was merged as the commit, else one that was merged with it; of
// several the last.
func mergedOf[P pull](text []byte, commit string) (int64, error) {
	var list []P
	if err := json.Unmarshal(text, &list); err != nil {
		return 0, err
	}
	var with, as int64
	for _, p := range list {
		merged, itself := p.brought(commit)
		if merged {
			with = max(with, p.number())
		}
		if merged && itself {
			as = max(as, p.number())
		}
	}
	if as != 0 {
		return as, nil
	}
	return with, nil
}

// commenter comments over HTTP.
type commenter struct {
	*client
	commenting
	repository string // where the API has it
}

// Comments reports whether a Provider type is one that comments on pull requests.
func Comments(providerType string) bool {
	_, comments := commentings[providerType]
	return comments
}

// NewCommenter returns the Commenter of a provider, of a type that Comments. Errors: ErrProvider.
func NewCommenter(p Provider, opts Options) (Commenter, error) {
	how, known := commentings[p.Type]
	if !known {
		return nil, fmt.Errorf("%w: type %q has no comments here; use githubpullrequestcomment, gitlabmergerequestcomment or giteapullrequestcomment", ErrProvider, p.Type)
	}
	p.Type = how.dialect
	client, at, err := connect(p, opts)
	if err != nil {
		return nil, err
	}
	client.act, client.what, client.refused = "comment at", "comments on pull requests", "the pull request may be locked"
	return &commenter{client: client, commenting: how, repository: strings.TrimSuffix(at.before, "/statuses/")}, nil
}

// Comment writes the comment, or edits it.
func (c *commenter) Comment(ctx context.Context, what Comment) (CommentRef, error) {
	if !commitHash.MatchString(what.Commit) {
		return CommentRef{}, fmt.Errorf("%w: commit %q is not a full hash", ErrStatus, what.Commit)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	at := what.At
	if at.PullRequest == 0 {
		number, err := c.pullRequest(ctx, what.Commit)
		if err != nil {
			return CommentRef{}, err
		}
		at = CommentRef{PullRequest: number}
	}
	marker := markerOf(what.Key, at.PullRequest)
	body := map[string]string{"body": what.Body + "\n" + marker}
	if at.ID != 0 {
		err := c.write(ctx, at, body)
		if !errors.Is(err, ErrNotFound) {
			return at, err
		}
	}
	// Nobody knows where it stands, or somebody has deleted it.
	id, err := c.find(ctx, at.PullRequest, marker)
	if err != nil {
		return CommentRef{}, err
	}
	if at.ID = id; id != 0 {
		return at, c.write(ctx, at, body)
	}
	text, err := c.get(ctx, http.MethodPost, c.list(at.PullRequest), body)
	if err != nil {
		return CommentRef{}, err
	}
	at.ID, err = c.idOf(text)
	return at, err
}

// markerOf is what nobody sees of a comment, and what it is found by. Who copies it has a copy of that one
// pull request's.
func markerOf(key string, number int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", key, number))
	return fmt.Sprintf("<!-- flotilla:%x -->", sum[:16])
}

// pullRequest returns the number of the one that brought a commit.
func (c *commenter) pullRequest(ctx context.Context, commit string) (int64, error) {
	text, err := c.get(ctx, http.MethodGet, c.pulls(commit), nil)
	if errors.Is(err, ErrNotFound) {
		if _, err := c.get(ctx, http.MethodGet, "", nil); err != nil {
			return 0, err // it is the repository that is not there
		}
		return 0, fmt.Errorf("%w %s", ErrNoPullRequest, commit)
	}
	if err != nil {
		return 0, err
	}
	number, err := c.merged(text, commit)
	if err != nil {
		return 0, c.malformed()
	}
	if number <= 0 {
		return 0, fmt.Errorf("%w %s", ErrNoPullRequest, commit)
	}
	return number, nil
}

// mostPages of comments are looked through.
const mostPages = 20

// find returns the oldest comment with a marker; 0 if there is none.
func (c *commenter) find(ctx context.Context, number int64, marker string) (int64, error) {
	var found int64
	for page := 1; page <= mostPages; page++ {
		path := c.list(number)
		if c.pages != "" {
			path += c.pages + strconv.Itoa(page)
		}
		text, err := c.get(ctx, http.MethodGet, path, nil)
		if err != nil {
			return 0, err
		}
		var list []struct {
			ID   int64  `json:"id"`
			Body string `json:"body"`
		}
		if json.Unmarshal(text, &list) != nil {
			return 0, c.malformed()
		}
		for _, one := range list {
			if strings.Contains(one.Body, marker) && (found == 0 || one.ID < found) {
				found = one.ID
			}
		}
		if found != 0 || c.pages == "" || len(list) < perPage {
			return found, nil
		}
	}
	return 0, nil
}

// write edits a comment.
func (c *commenter) write(ctx context.Context, at CommentRef, body any) error {
	method, path := c.edit(at)
	_, err := c.get(ctx, method, path, body)
	return err
}

// get asks for something below the repository.
func (c *commenter) get(ctx context.Context, method, path string, body any) ([]byte, error) {
	got, err := c.ask(ctx, method, c.repository+path, body)
	if err != nil {
		return nil, err
	}
	return got.text, c.outcome(got, nil)
}

func (c *commenter) idOf(text []byte) (int64, error) {
	var one struct {
		ID int64 `json:"id"`
	}
	if json.Unmarshal(text, &one) != nil || one.ID <= 0 {
		return 0, c.malformed()
	}
	return one.ID, nil
}

func (c *commenter) malformed() error {
	return fmt.Errorf("%s %s: %w: what answers is no forge of this kind: change the provider's address or type", c.act, c.name, ErrProvider)
}
