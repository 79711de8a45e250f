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

// Comment is a comment on the pull request that brought a commit.
type Comment struct {
	// Commit is the full hash, in lower-case hex.
	Commit string
	// Key distinguishes the comment from others. It is a secret of the caller, so
	// that nobody can forge a comment that is taken for this one.
	Key string
	// Body is Markdown, sent unchanged.
	Body string
	// At identifies the existing comment; the zero value means that it is not
	// known.
	At CommentRef
}

// CommentRef identifies a comment. An ID of 0 means that only the pull request is
// known.
type CommentRef struct {
	PullRequest int64
	ID          int64
}

// Commenter maintains one comment on the pull request that brought a commit: it
// creates the comment once and edits it from then on. It returns the comment's
// reference. Errors: the sentinels of this package, a RateLimitError, or a
// transient fault.
type Commenter interface {
	Comment(ctx context.Context, c Comment) (CommentRef, error)
}

// commenting describes the comment API of one kind of forge. Its paths are
// relative to the repository.
type commenting struct {
	// dialect is the Provider type of the forge's statuses.
	dialect string
	// pulls returns the path that lists the pull requests of a commit.
	pulls func(commit string) string
	// merged returns the number of the merged pull request in a response; 0 if
	// there is none.
	merged func(text []byte, commit string) (int64, error)
	// list returns the path where comments are listed and created; edit returns
	// the method and path to edit one.
	list func(number int64) string
	edit func(at CommentRef) (method, path string)
	// pages is the query for a page of perPage comments, without the page number;
	// empty if the list is not paged.
	pages string
}

const perPage = 100 // the value in pages

// commentings maps Provider types, which are Flux's, to the comment APIs.
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

// pull is a pull request in a forge's list.
type pull interface {
	// brought reports whether the pull request was merged, and whether the commit
	// is its merge commit.
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

// mergedOf returns the number of the pull request whose merge commit is the
// commit, otherwise of a merged one that contains it; the highest number if there
// are several.
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

// commenter writes comments over HTTP.
type commenter struct {
	*client
	commenting
	repository string // the repository's address in the API
}

// Comments reports whether a Provider type comments on pull requests.
func Comments(providerType string) bool {
	_, comments := commentings[providerType]
	return comments
}

// NewCommenter returns the Commenter of a provider whose type comments on pull
// requests. Errors: ErrProvider.
func NewCommenter(p Provider, opts Options) (Commenter, error) {
	c, err := newCommenter(p, opts)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func newCommenter(p Provider, opts Options) (*commenter, error) {
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

// Comment edits the comment, or creates it if it does not exist.
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
	// The comment's ID is not known, or somebody has deleted the comment.
	id, err := c.find(ctx, at.PullRequest, marker)
	if err != nil {
		return CommentRef{}, err
	}
	if at.ID = id; id != 0 {
		// A comment that is not ours may have a copy of the marker, once ours is deleted.
		if err := c.write(ctx, at, body); !errors.Is(err, ErrUnauthorized) && !errors.Is(err, ErrNotFound) {
			return at, err
		}
	}
	text, err := c.get(ctx, http.MethodPost, c.list(at.PullRequest), body)
	if err != nil {
		return CommentRef{}, err
	}
	at.ID, err = c.idOf(text)
	return at, err
}

// markerOf returns an HTML comment, invisible in the rendered text, by which the
// comment is found. It depends on the pull request, so that a copied marker is of
// no use under another one.
func markerOf(key string, number int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", key, number))
	return fmt.Sprintf("<!-- flotilla:%x -->", sum[:16])
}

// pullRequest returns the number of the pull request that brought a commit.
func (c *commenter) pullRequest(ctx context.Context, commit string) (int64, error) {
	text, err := c.get(ctx, http.MethodGet, c.pulls(commit), nil)
	if errors.Is(err, ErrNotFound) {
		if _, err := c.get(ctx, http.MethodGet, "", nil); err != nil {
			return 0, err // the repository itself is missing
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

// mostPages is how many pages of comments are searched.
const mostPages = 20

// find returns the ID of the oldest comment with a marker; 0 if there is none.
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

// get sends a request to a path below the repository and returns the response.
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
