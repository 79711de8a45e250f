package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// labelling describes the labels of pull requests at one kind of forge. Paths are relative to the repository.
type labelling struct {
	// events returns the path of a page of what happened to a pull request, the oldest first.
	events func(number int64) string
	// added returns who added a label by an event; empty if it is none, or of another label.
	added func(event json.RawMessage, label string) (who string)
	// rights returns the path that says what somebody may do, and writes whether that is to write.
	rights func(who string) string
	writes func(text []byte) bool
	// remove takes a label off a pull request.
	remove func(ctx context.Context, c *commenter, number int64, label string) error
}

// labellings maps Provider types of statuses to the labels.
var labellings = map[string]labelling{
	typeGitHub: {
		events: func(number int64) string { return fmt.Sprintf("/issues/%d/events?per_page=100&page=", number) },
		added: func(event json.RawMessage, label string) string {
			var e struct {
				Event string                 `json:"event"`
				Actor struct{ Login string } `json:"actor"`
				Label struct{ Name string }  `json:"label"`
			}
			if json.Unmarshal(event, &e) != nil || e.Event != "labeled" || e.Label.Name != label {
				return ""
			}
			return e.Actor.Login
		},
		rights: collaborator, writes: collaborates,
		remove: func(ctx context.Context, c *commenter, number int64, label string) error {
			_, err := c.get(ctx, http.MethodDelete, fmt.Sprintf("/issues/%d/labels/%s", number, url.PathEscape(label)), nil)
			return err
		},
	},
	typeGitea: {
		events: func(number int64) string { return fmt.Sprintf("/issues/%d/timeline?limit=50&page=", number) },
		added: func(event json.RawMessage, label string) string {
			var e struct {
				Type  string                 `json:"type"`
				Body  string                 `json:"body"` // "1" for one that is added
				User  struct{ Login string } `json:"user"`
				Label *struct{ Name string } `json:"label"`
			}
			if json.Unmarshal(event, &e) != nil || e.Type != "label" || e.Body != "1" || e.Label == nil || e.Label.Name != label {
				return ""
			}
			return e.User.Login
		},
		rights: collaborator, writes: collaborates, remove: removeByID,
	},
	"gitlab": {
		events: func(number int64) string {
			return fmt.Sprintf("/merge_requests/%d/resource_label_events?per_page=100&page=", number)
		},
		added: func(event json.RawMessage, label string) string {
			var e struct {
				Action string                 `json:"action"`
				User   struct{ ID int64 }     `json:"user"`
				Label  *struct{ Name string } `json:"label"`
			}
			if json.Unmarshal(event, &e) != nil || e.Action != "add" || e.Label == nil || e.Label.Name != label || e.User.ID <= 0 {
				return ""
			}
			return strconv.FormatInt(e.User.ID, 10)
		},
		rights: func(who string) string { return "/members/all/" + url.PathEscape(who) },
		writes: func(text []byte) bool {
			var member struct {
				Level int    `json:"access_level"`
				State string `json:"state"`
			}
			const developer = 30
			return json.Unmarshal(text, &member) == nil && member.Level >= developer && member.State == "active"
		},
		remove: func(ctx context.Context, c *commenter, number int64, label string) error {
			_, err := c.get(ctx, http.MethodPut, fmt.Sprintf("/merge_requests/%d", number), map[string]string{"remove_labels": label})
			return err
		},
	},
}

func collaborator(who string) string { return "/collaborators/" + url.PathEscape(who) + "/permission" }

func collaborates(text []byte) bool {
	var rights struct {
		Permission string `json:"permission"`
	}
	if json.Unmarshal(text, &rights) != nil {
		return false
	}
	return rights.Permission == "write" || rights.Permission == "admin" || rights.Permission == "owner"
}

// removeByID removes a label from a pull request of a forge that knows it by its number there.
func removeByID(ctx context.Context, c *commenter, number int64, label string) error {
	path := fmt.Sprintf("/issues/%d/labels", number)
	text, err := c.get(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	var labels []struct {
		ID   int64
		Name string
	}
	if decodeList(text, &labels) != nil {
		return c.malformed()
	}
	for _, one := range labels {
		if one.Name == label {
			got, err := c.ask(ctx, http.MethodDelete, c.repository+path+"/"+strconv.FormatInt(one.ID, 10), nil)
			if err != nil || got.code == http.StatusNoContent {
				return err
			}
			return c.outcome(got, nil)
		}
	}
	return nil
}

// LabelledByWriter reports whether who added a label to a pull request last may write to the repository. Whatever is not known is
// a no: that of very many events the last ones were not read, for one.
func (r *Reviewer) LabelledByWriter(ctx context.Context, number int64, label string) (bool, error) {
	events, all, err := r.list.all(ctx, r.labels.events(number))
	if err != nil || !all {
		return false, err
	}
	who := ""
	for _, event := range events {
		if by := r.labels.added(event, label); by != "" {
			who = by
		}
	}
	if who == "" {
		return false, nil
	}
	return r.mayWrite(ctx, who)
}

// Unlabel takes a label off a pull request.
func (r *Reviewer) Unlabel(ctx context.Context, number int64, label string) error {
	return r.labels.remove(ctx, r.list, number, label)
}
