package forge_test

import "testing"

// TestCodeOwners checks where each kind of forge has the file, and that the first one counts.
func TestCodeOwners(t *testing.T) {
	const github, gitea, gitlab = "GET /api/v3/repos/org/repo/contents/", "GET /api/v1/repos/org/repo/contents/", "GET /api/v4/projects/org%2Frepo/repository/files/"
	ref := "?ref=" + hash("a")
	const file = `200 {"type":"file","encoding":"base64","content":"KiBA\nYW5u\n"}`
	for name, tc := range map[string]struct {
		kind    string
		answers map[string]string
		want    string
		fails   bool
	}{
		"GitHub":                     {kind: "github", answers: map[string]string{github + ".github/CODEOWNERS" + ref: "404 {}", github + "CODEOWNERS" + ref: file}, want: "github: * @ann"},
		"Gitea":                      {kind: "gitea", answers: map[string]string{gitea + "CODEOWNERS" + ref: "404 {}", gitea + "docs/CODEOWNERS" + ref: "404 {}", gitea + ".gitea/CODEOWNERS" + ref: file}, want: "gitea: * @ann"},
		"Forgejo, without one":       {kind: "gitea", answers: map[string]string{gitea + "CODEOWNERS" + ref: "404 {}", gitea + "docs/CODEOWNERS" + ref: "404 {}", gitea + ".gitea/CODEOWNERS" + ref: "404 {}", gitea + ".forgejo/CODEOWNERS" + ref: "404 {}"}, want: "gitea: "},
		"GitLab":                     {kind: "gitlab", answers: map[string]string{gitlab + "CODEOWNERS" + ref: "404 {}", gitlab + "docs%2FCODEOWNERS" + ref: file}, want: "gitlab: * @ann"},
		"one that cannot be seen":    {kind: "github", answers: map[string]string{github + ".github/CODEOWNERS" + ref: "403 {}"}, want: "github: ", fails: true},
		"one that is no file":        {kind: "github", answers: map[string]string{github + ".github/CODEOWNERS" + ref: "200 []"}, want: "github: ", fails: true},
		"one that is too large here": {kind: "github", answers: map[string]string{github + ".github/CODEOWNERS" + ref: `200 {"encoding":"none","content":""}`}, want: "github: ", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, tc.answers)
			kind, text, err := reviewer(t, tc.kind, s.server.URL+"/org/repo").CodeOwners(t.Context(), hash("a"))
			if got := string(kind) + ": " + text; got != tc.want || (err != nil) != tc.fails || len(s.got) != len(tc.answers) {
				t.Errorf("%q, %v after %q; want %q", got, err, s.got, tc.want)
			}
		})
	}
}
