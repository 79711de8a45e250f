package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// all returns the entries of a list, whose path ends where the number of the page goes. The second result says whether these are all
// of them: of a very long list the last ones are not read.
func (c *commenter) all(ctx context.Context, path string) ([]json.RawMessage, bool, error) {
	var out []json.RawMessage
	for page := 1; page <= mostPages; page++ {
		got, err := c.ask(ctx, http.MethodGet, fmt.Sprint(c.repository, path, page), nil)
		if err == nil && !isNull(got) {
			err = c.outcome(got, nil)
		}
		if err != nil {
			return nil, false, err
		}
		var entries []json.RawMessage
		if !isNull(got) && decodeList(got.text, &entries) != nil {
			return nil, false, c.malformed()
		}
		if out = append(out, entries...); !c.goesOn(got, len(entries)) {
			return out, true, nil
		}
	}
	return out, false, nil
}

// goesOn reports whether there may be another page. Gitea does not say so of most lists, and its pages may be shorter than asked for.
func (c *commenter) goesOn(page answer, entries int) bool {
	return entries > 0 && (c.commenting.dialect == typeGitea || hasNext(page.header))
}

// isNull reports whether a page is the empty one of Gitea.
func isNull(page answer) bool {
	return page.code == http.StatusOK && bytes.Equal(bytes.TrimSpace(page.text), []byte("null"))
}
