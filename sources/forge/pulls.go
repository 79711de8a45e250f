package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// PullRequest is one that is open, or a merge request. All of it is foreign text.
type PullRequest struct {
	Number int64
	// Head is the hash of its latest commit, and Ref the full name of the ref that leads there.
	Head, Ref string
	// Base is the short name of the branch that it is to be merged into.
	Base string
	// Fork says that its commits are from another repository, into which other people may write.
	Fork bool
	// Merged says that it is not open any more, as it was merged.
	Merged bool
	// Draft says that its author does not want it to be merged yet.
	Draft bool
	// Labels are sorted.
	Labels []string
	// Author is the login of who opened it, and Updated when something last happened to it, as the forge writes it; empty where it
	// does not say.
	Author, Updated string
}

// listing describes how one kind of forge lists open pull requests.
type listing struct {
	comments string // the Provider type of comments
	path     string // relative to the repository, without the number of the page
	mergedAs string // where it is told which were merged as a commit, relative to the repository
	read     func(text []byte) ([]PullRequest, error)
}

const (
	// mostPulls is how many open pull requests are read.
	mostPulls = 1000
	// mostListed is how much of a list is read, in bytes: descriptions are in it, of which GitLab takes a million
	// characters and GitHub 65,536. Pages are small enough for that.
	mostListed = 64 << 20
)

// listings maps Provider types of statuses to the lists.
var listings = map[string]listing{
	typeGitHub: {"githubpullrequestcomment", "/pulls?state=open&sort=created&direction=asc&per_page=50&page=", "/commits/%s/pulls?per_page=50", readPulls},
	typeGitea:  {"giteapullrequestcomment", "/pulls?state=open&sort=oldest&limit=20&page=", "/commits/%s/pull", readPulls},
	"gitlab":   {"gitlabmergerequestcomment", "/merge_requests?state=opened&order_by=created_at&sort=asc&per_page=20&page=", "/repository/commits/%s/merge_requests?per_page=50", readMerges},
}

// Reviewer lists open pull requests, comments on them, sets statuses of their commits, and knows who labelled them and who approves of them. Errors: as Poster and Commenter.
type Reviewer struct {
	Poster
	Commenter
	listing
	dialect   string
	labels    labelling
	approvals approving
	list      *commenter
}

// Reviews reports whether the pull requests of a Provider type can be reviewed.
func Reviews(providerType string) bool {
	_, _, known := listingOf(providerType)
	return known
}

// listingOf returns how a Provider type lists pull requests; its type may be that of statuses or of comments.
func listingOf(providerType string) (dialect string, of listing, known bool) {
	for dialect, of := range listings {
		if providerType == dialect || providerType == of.comments {
			return dialect, of, true
		}
	}
	return "", listing{}, false
}

// NewReviewer returns the Reviewer of a provider. Errors: ErrProvider.
func NewReviewer(p Provider, opts Options) (*Reviewer, error) {
	dialect, of, known := listingOf(p.Type)
	if !known {
		return nil, fmt.Errorf("%w: pull requests of the type %q cannot be reviewed here; use github, gitlab or gitea", ErrProvider, p.Type)
	}
	opts = opts.withDefaults()
	p.Type = of.comments
	comments, err := newCommenter(p, opts)
	if err != nil {
		return nil, err
	}
	list, err := newCommenter(p, opts)
	if err != nil {
		return nil, err
	}
	list.act, list.what, list.most = "list pull requests of", "comments on pull requests and commit statuses", mostListed
	p.Type = dialect
	statuses, err := New(p, opts)
	if err != nil {
		return nil, err
	}
	return &Reviewer{Poster: statuses, Commenter: comments, listing: of, dialect: dialect, labels: labellings[dialect], approvals: approvings[dialect], list: list}, nil
}

// PullRequests returns the open pull requests, the oldest first; of very many the first. The second result says whether these
// are all.
func (r *Reviewer) PullRequests(ctx context.Context) ([]PullRequest, bool, error) {
	var out []PullRequest
	seen := map[int64]bool{} // one that is closed meanwhile moves others to another page
	for page := 1; ; page++ {
		got, err := r.list.ask(ctx, http.MethodGet, fmt.Sprint(r.list.repository, r.path, page), nil)
		if err == nil {
			err = r.list.outcome(got, nil)
		}
		if err != nil {
			return nil, false, err
		}
		pulls, err := r.read(got.text)
		if err != nil {
			return nil, false, r.list.malformed()
		}
		fresh := 0
		for _, pull := range pulls {
			if pull.Number > 0 && commitHash.MatchString(pull.Head) && pull.Base != "" && !seen[pull.Number] {
				seen[pull.Number] = true
				out = append(out, pull)
				fresh++
			}
		}
		switch {
		case len(out) >= mostPulls:
			return out[:mostPulls], false, nil
		case fresh == 0 || !hasNext(got.header):
			return out, true, nil
		}
	}
}

// Merged returns the pull request by whose merge a branch got a commit, as the forge says it; false if it knows of none. That the commit
// holds what the pull request had is for the caller to verify: people can push what looks like a merge.
func (r *Reviewer) Merged(ctx context.Context, commit, branch string) (PullRequest, bool, error) {
	if !commitHash.MatchString(commit) {
		return PullRequest{}, false, nil
	}
	text, err := r.list.get(ctx, http.MethodGet, fmt.Sprintf(r.mergedAs, commit), nil)
	if errors.Is(err, ErrNotFound) {
		return PullRequest{}, false, nil
	}
	if err != nil {
		return PullRequest{}, false, err
	}
	if r.dialect == typeGitea {
		text = slices.Concat([]byte("["), text, []byte("]")) // it gives the one alone
	}
	pulls, err := r.read(text)
	if err != nil {
		return PullRequest{}, false, r.list.malformed()
	}
	for _, pull := range pulls {
		if pull.Merged && pull.Number > 0 && pull.Base == branch && commitHash.MatchString(pull.Head) {
			return pull, true, nil
		}
	}
	return PullRequest{}, false, nil
}

// hasNext reports whether a list goes on, as all three forges say it.
func hasNext(header http.Header) bool {
	return slices.ContainsFunc(header.Values("Link"), func(link string) bool { return strings.Contains(link, `rel="next"`) })
}

// repositoryID tells the repositories of a forge apart.
type repositoryID struct {
	ID int64 `json:"id"`
}

// readPulls reads a page of GitHub's, or of Gitea's.
func readPulls(text []byte) ([]PullRequest, error) {
	type side struct {
		SHA  string        `json:"sha"`
		Ref  string        `json:"ref"`
		Repo *repositoryID `json:"repo"` // null once the fork is deleted
	}
	var list []struct {
		Number int64 `json:"number"`
		Draft  bool  `json:"draft"`
		Head   side  `json:"head"`
		Base   side  `json:"base"`
		Labels []struct {
			Name string `json:"name"`
		} `json:"labels"`
		User    struct{ Login string } `json:"user"`
		Updated string                 `json:"updated_at"`
		Merged  *string                `json:"merged_at"`
	}
	if err := decodeList(text, &list); err != nil {
		return nil, err
	}
	out := make([]PullRequest, 0, len(list))
	for _, one := range list {
		pull := PullRequest{
			Number: one.Number, Head: one.Head.SHA, Ref: fmt.Sprintf("refs/pull/%d/head", one.Number), Base: one.Base.Ref, Draft: one.Draft,
			Author: one.User.Login, Updated: one.Updated, Merged: one.Merged != nil,
			Fork: one.Head.Repo == nil || one.Base.Repo == nil || one.Head.Repo.ID == 0 || one.Head.Repo.ID != one.Base.Repo.ID,
		}
		for _, label := range one.Labels {
			pull.Labels = append(pull.Labels, label.Name)
		}
		slices.Sort(pull.Labels)
		out = append(out, pull)
	}
	return out, nil
}

// readMerges reads a page of GitLab's.
func readMerges(text []byte) ([]PullRequest, error) {
	var list []struct {
		IID     int64                     `json:"iid"`
		SHA     string                    `json:"sha"`
		Target  string                    `json:"target_branch"`
		From    int64                     `json:"source_project_id"`
		To      int64                     `json:"target_project_id"`
		Draft   bool                      `json:"draft"`
		Labels  []string                  `json:"labels"`
		Author  struct{ Username string } `json:"author"`
		Updated string                    `json:"updated_at"`
		State   string                    `json:"state"`
	}
	if err := decodeList(text, &list); err != nil {
		return nil, err
	}
	out := make([]PullRequest, 0, len(list))
	for _, one := range list {
		slices.Sort(one.Labels)
		out = append(out, PullRequest{
			Number: one.IID, Head: one.SHA, Ref: fmt.Sprintf("refs/merge-requests/%d/head", one.IID), Base: one.Target, Draft: one.Draft,
			Fork: one.From == 0 || one.From != one.To, Labels: one.Labels,
			Author: one.Author.Username, Updated: one.Updated, Merged: one.State == "merged",
		})
	}
	return out, nil
}

// decodeList reads a list; an object, such as the fault of another kind of server, is none.
func decodeList(text []byte, list any) error {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return ErrProvider
	}
	return json.Unmarshal(text, list)
}
