package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Approver is somebody who approves of a pull request.
type Approver struct {
	// Login is the name, as people write it after an @.
	Login string
	// id is how the API names them.
	id string
}

// approving describes reviews, and the teams of reviewers, at one kind of forge.
type approving struct {
	// approvers returns who approves of a head.
	approvers func(ctx context.Context, c *commenter, number int64, head string) ([]Approver, error)
	// member reports whether somebody is in a team. A team that is not there is ErrNotFound, or a no.
	member func(ctx context.Context, c *commenter, team string, who Approver) (bool, error)
}

// approvings maps Provider types of statuses to the reviews.
var approvings = map[string]approving{
	typeGitHub: {reviewsAt("/pulls/%d/reviews?per_page=100&page="), githubMember},
	typeGitea:  {reviewsAt("/pulls/%d/reviews?limit=50&page="), giteaMember},
	"gitlab":   {gitlabApprovers, gitlabMember},
}

// Approvers returns who approves of a pull request at this head, sorted. Approvals of other heads do not count, nor those that were
// dismissed or taken back. Whatever is not known is no approval.
func (r *Reviewer) Approvers(ctx context.Context, number int64, head string) ([]Approver, error) {
	found, err := r.approvals.approvers(ctx, r.list, number, head)
	slices.SortFunc(found, func(a, b Approver) int { return strings.Compare(a.Login, b.Login) })
	return found, err
}

// InTeam reports whether somebody is in a team: ORGANIZATION/TEAM, or the full path of a group of GitLab.
func (r *Reviewer) InTeam(ctx context.Context, team string, who Approver) (bool, error) {
	for segment := range strings.SplitSeq(team, "/") {
		if strings.Trim(segment, ".") == "" {
			return false, nil // it would lead elsewhere
		}
	}
	is, err := r.approvals.member(ctx, r.list, team, who)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return is, err
}

// reviewsAt returns how approvers are read of a list of reviews, the oldest first, as GitHub and Gitea have it.
func reviewsAt(path string) func(context.Context, *commenter, int64, string) ([]Approver, error) {
	return func(ctx context.Context, c *commenter, number int64, head string) ([]Approver, error) {
		reviews, all, err := c.all(ctx, fmt.Sprintf(path, number))
		if err != nil || !all { // the last ones may take approvals back
			return nil, err
		}
		latest := map[string]bool{} // whether the last word of a reviewer is an approval of this head
		for _, text := range reviews {
			var one struct {
				User      *struct{ Login string } `json:"user"`
				State     string                  `json:"state"`
				Commit    string                  `json:"commit_id"`
				Dismissed bool                    `json:"dismissed"` // of Gitea alone
			}
			if json.Unmarshal(text, &one) != nil {
				return nil, c.malformed()
			}
			if one.User == nil || one.User.Login == "" {
				continue
			}
			switch one.State {
			case "APPROVED":
				latest[one.User.Login] = one.Commit == head && !one.Dismissed
			case "CHANGES_REQUESTED", "REQUEST_CHANGES", "DISMISSED":
				latest[one.User.Login] = false
			}
		}
		var out []Approver
		for login, approves := range latest {
			if approves {
				out = append(out, Approver{Login: login, id: login})
			}
		}
		return out, nil
	}
}

// gitlabApprovers returns who approved of a merge request since its head was pushed: GitLab does not say of which head an approval
// is, and keeps it for another one unless the project has it otherwise.
func gitlabApprovers(ctx context.Context, c *commenter, number int64, head string) ([]Approver, error) {
	text, err := c.get(ctx, http.MethodGet, fmt.Sprintf("/merge_requests/%d/approvals", number), nil)
	if err != nil {
		return nil, err
	}
	var approvals struct {
		By []struct {
			User struct {
				ID       int64
				Username string
				State    string
			} `json:"user"`
		} `json:"approved_by"`
	}
	if json.Unmarshal(text, &approvals) != nil {
		return nil, c.malformed()
	}
	if len(approvals.By) == 0 {
		return nil, nil
	}
	pushed, is, err := gitlabPushed(ctx, c, number, head)
	if err != nil || !is {
		return nil, err
	}
	since, err := gitlabApprovedSince(ctx, c, number, pushed)
	if err != nil {
		return nil, err
	}
	var out []Approver
	for _, by := range approvals.By {
		if by.User.State == "active" && by.User.Username != "" && since[by.User.ID] {
			out = append(out, Approver{Login: by.User.Username, id: strconv.FormatInt(by.User.ID, 10)})
		}
	}
	return out, nil
}

// gitlabPushed returns when the head of a merge request was pushed; false if it has another one.
func gitlabPushed(ctx context.Context, c *commenter, number int64, head string) (time.Time, bool, error) {
	text, err := c.get(ctx, http.MethodGet, fmt.Sprintf("/merge_requests/%d/versions?per_page=1&page=1", number), nil)
	if err != nil {
		return time.Time{}, false, err
	}
	var newest []struct {
		Head    string    `json:"head_commit_sha"`
		Created time.Time `json:"created_at"`
	}
	if decodeList(text, &newest) != nil {
		return time.Time{}, false, c.malformed()
	}
	if len(newest) == 0 || newest[0].Head != head {
		return time.Time{}, false, nil
	}
	return newest[0].Created, true, nil
}

// gitlabApprovedSince returns the numbers of those who approved of a merge request after a time, by what GitLab itself noted.
func gitlabApprovedSince(ctx context.Context, c *commenter, number int64, since time.Time) (map[int64]bool, error) {
	notes, _, err := c.all(ctx, fmt.Sprintf("/merge_requests/%d/notes?sort=desc&order_by=created_at&per_page=100&page=", number))
	if err != nil {
		return nil, err
	}
	out := map[int64]bool{}
	for _, text := range notes {
		var one struct {
			System  bool               `json:"system"`
			Body    string             `json:"body"`
			Author  struct{ ID int64 } `json:"author"`
			Created time.Time          `json:"created_at"`
		}
		if json.Unmarshal(text, &one) != nil {
			return nil, c.malformed()
		}
		if one.System && one.Body == "approved this merge request" && one.Created.After(since) {
			out[one.Author.ID] = true
		}
	}
	return out, nil
}

// getAPI returns what the forge answers at a path of its API, in which the repository is below a segment.
func (c *commenter) getAPI(ctx context.Context, below, path string) ([]byte, error) {
	api, _, _ := strings.Cut(c.repository, below)
	got, err := c.ask(ctx, http.MethodGet, api+path, nil)
	if err != nil {
		return nil, err
	}
	return got.text, c.outcome(got, nil)
}

// teamOf returns the organization and the name of a team; without an organization, that of the repository.
func (c *commenter) teamOf(team string) (organization, name string) {
	if organization, name, found := strings.Cut(team, "/"); found {
		return url.PathEscape(organization), name
	}
	_, repository, _ := strings.Cut(c.repository, "/repos/")
	organization, _, _ = strings.Cut(repository, "/")
	return organization, team
}

func githubMember(ctx context.Context, c *commenter, team string, who Approver) (bool, error) {
	organization, name := c.teamOf(team)
	text, err := c.getAPI(ctx, "/repos/", "/orgs/"+organization+"/teams/"+url.PathEscape(name)+"/memberships/"+url.PathEscape(who.id))
	var membership struct {
		State string `json:"state"` // "pending" for one who is invited
	}
	return err == nil && json.Unmarshal(text, &membership) == nil && membership.State == "active", err
}

func giteaMember(ctx context.Context, c *commenter, team string, who Approver) (bool, error) {
	organization, name := c.teamOf(team)
	text, err := c.getAPI(ctx, "/repos/", "/orgs/"+organization+"/teams/search?include_desc=false&limit=50&q="+url.QueryEscape(name))
	if err != nil {
		return false, err
	}
	var found struct {
		Data []struct {
			ID   int64
			Name string
		} `json:"data"`
	}
	if json.Unmarshal(text, &found) != nil {
		return false, c.malformed()
	}
	for _, one := range found.Data {
		if strings.EqualFold(one.Name, name) {
			_, err := c.getAPI(ctx, "/repos/", fmt.Sprintf("/teams/%d/members/%s", one.ID, url.PathEscape(who.id)))
			return err == nil, err
		}
	}
	return false, nil
}

func gitlabMember(ctx context.Context, c *commenter, team string, who Approver) (bool, error) {
	text, err := c.getAPI(ctx, "/projects/", "/groups/"+url.PathEscape(team)+"/members/all/"+url.PathEscape(who.id))
	var member struct {
		State string `json:"state"`
	}
	return err == nil && json.Unmarshal(text, &member) == nil && member.State == "active", err
}
