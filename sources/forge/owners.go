package forge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/flotilla-io/flotilla/policies/codeowners"
)

// ownersFiles are where a CODEOWNERS file is, the first one of which counts, and the path at which the API has a file.
var ownersFiles = map[string]struct {
	kind  codeowners.Kind
	files []string
	path  func(file, commit string) string
}{
	typeGitHub: {codeowners.GitHub, []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"}, contents},
	typeGitea:  {codeowners.Gitea, []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS"}, contents},
	"gitlab": {codeowners.GitLab, []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"}, func(file, commit string) string {
		return "/repository/files/" + url.PathEscape(file) + "?ref=" + url.QueryEscape(commit)
	}},
}

func contents(file, commit string) string {
	return "/contents/" + file + "?ref=" + url.QueryEscape(commit)
}

// CodeOwners returns the text of the CODEOWNERS file of a commit, and by whose rules it is written; empty where there is none.
func (r *Reviewer) CodeOwners(ctx context.Context, commit string) (codeowners.Kind, string, error) {
	of := ownersFiles[r.dialect]
	for _, name := range of.files {
		text, err := r.list.get(ctx, http.MethodGet, of.path(name, commit), nil)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return of.kind, "", err
		}
		var file struct {
			Content  string `json:"content"`
			Encoding string `json:"encoding"`
		}
		if json.Unmarshal(text, &file) != nil || file.Encoding != "base64" {
			return of.kind, "", r.list.malformed()
		}
		content, err := base64.StdEncoding.DecodeString(strings.TrimSpace(file.Content))
		if err != nil {
			return of.kind, "", r.list.malformed()
		}
		return of.kind, string(content), nil
	}
	return of.kind, "", nil
}
