package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Said is a comment on a pull request. All of it is foreign text.
type Said struct {
	ID   int64
	Text string
	At   time.Time
	by   string // as the API names them
}

// Said returns comments on a pull request since a time, the oldest first; of very many the first, and at GitLab the last.
func (r *Reviewer) Said(ctx context.Context, number int64, since time.Time) ([]Said, error) {
	list, err := r.list.said(ctx, number, since)
	if err != nil {
		return nil, err
	}
	var out []Said
	for _, text := range list {
		var one struct {
			ID      int64                  `json:"id"`
			Body    string                 `json:"body"`
			System  bool                   `json:"system"`
			Created time.Time              `json:"created_at"`
			User    struct{ Login string } `json:"user"`
			Author  struct{ ID int64 }     `json:"author"`
		}
		if json.Unmarshal(text, &one) != nil {
			return nil, r.list.malformed()
		}
		by := one.User.Login
		if one.Author.ID > 0 {
			by = strconv.FormatInt(one.Author.ID, 10)
		}
		if one.ID > 0 && by != "" && !one.System && !one.Created.Before(since) {
			out = append(out, Said{ID: one.ID, Text: one.Body, At: one.Created, by: by})
		}
	}
	slices.SortFunc(out, func(a, b Said) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// said returns comments as each forge has them.
func (c *commenter) said(ctx context.Context, number int64, since time.Time) ([]json.RawMessage, error) {
	after := "?since=" + url.QueryEscape(since.UTC().Format(time.RFC3339))
	switch c.commenting.dialect {
	case typeGitHub:
		list, _, err := c.all(ctx, c.commenting.list(number)+after+"&per_page=100&page=")
		return list, err
	case typeGitea: // it has no pages of them
		text, err := c.get(ctx, http.MethodGet, c.commenting.list(number)+after, nil)
		return c.entries(text, err)
	default:
		text, err := c.get(ctx, http.MethodGet, fmt.Sprintf("/merge_requests/%d/notes?sort=desc&order_by=created_at&per_page=100&page=1", number), nil)
		return c.entries(text, err)
	}
}

func (c *commenter) entries(text []byte, err error) ([]json.RawMessage, error) {
	var list []json.RawMessage
	if err == nil && decodeList(text, &list) != nil {
		err = c.malformed()
	}
	return list, err
}

// SaidByWriter reports whether who wrote a comment may write to the repository.
func (r *Reviewer) SaidByWriter(ctx context.Context, what Said) (bool, error) {
	return r.mayWrite(ctx, what.by)
}

// mayWrite reports whether somebody may write to the repository.
func (r *Reviewer) mayWrite(ctx context.Context, who string) (bool, error) {
	text, err := r.list.get(ctx, http.MethodGet, r.labels.rights(who), nil)
	if errors.Is(err, ErrNotFound) { // somebody who is no member
		return false, nil
	}
	return err == nil && r.labels.writes(text), err
}
