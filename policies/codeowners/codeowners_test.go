package codeowners_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flotilla-io/flotilla/policies/codeowners"
)

func TestOwnersOfFiles(t *testing.T) {
	ann, sre := codeowners.Owners{Users: []string{"ann"}}, codeowners.Owners{Teams: []string{"org/sre"}}
	either := codeowners.Owners{Users: []string{"ann"}, Teams: []string{"ann"}}
	for name, tc := range map[string]struct {
		kind codeowners.Kind
		text string
		want map[string]codeowners.Owners
	}{
		"GitHub: the last line that fits counts": {codeowners.GitHub, "# all\n* @ann\n/prod/ @org/sre # ours\n", map[string]codeowners.Owners{"a.yaml": ann, "x/prod/a.yaml": ann, "prod/x/a.yaml": sre}},
		"GitHub: a line without owners":          {codeowners.GitHub, "* @ann\n/docs/\n", map[string]codeowners.Owners{"docs/a": {}, "a": ann}},
		"GitHub: files of a folder alone":        {codeowners.GitHub, "docs/* @ann\n", map[string]codeowners.Owners{"docs/a": ann, "docs/x/a": {}, "x/docs/a": {}}},
		"GitHub: a folder anywhere":              {codeowners.GitHub, "apps/ @ann\n", map[string]codeowners.Owners{"apps/a": ann, "x/apps/y/a": ann, "apps": {}}},
		"GitHub: a name, file or folder":         {codeowners.GitHub, "/apps/web @ann\n**/logs @org/sre\n*.js @ann\n", map[string]codeowners.Owners{"apps/web": ann, "apps/web/a": ann, "apps/website": {}, "x/logs/a": sre, "logs/a": sre, "x/a.js": ann, "a.jsx": {}}},
		"GitHub: stars and question marks":       {codeowners.GitHub, "/a/**/z?.yaml @ann\n", map[string]codeowners.Owners{"a/z1.yaml": ann, "a/b/c/z1.yaml": ann, "a/z.yaml": {}, "a/z/.yaml": {}}},
		"GitHub: characters of expressions":      {codeowners.GitHub, "/a+(b).yaml @ann\n", map[string]codeowners.Owners{"a+(b).yaml": ann, "aa(b)xyaml": {}}},
		"GitHub: an address of mail":             {codeowners.GitHub, "* ann@example.com\n", map[string]codeowners.Owners{"a": {}}},
		"GitHub: a space in a path":              {codeowners.GitHub, `/a\ b @ann`, map[string]codeowners.Owners{"a b": ann}},
		"GitLab: sections each count": {codeowners.GitLab, "* @ann\n[SRE] @org/sre\n/prod/\n[Sre]\n/prod/eu/ @org/eu\n^[Docs]\n* @eve\n", map[string]codeowners.Owners{
			"a": either, "prod/a": {Users: []string{"ann"}, Teams: []string{"ann", "org/sre"}}, "prod/eu/a": {Users: []string{"ann"}, Teams: []string{"ann", "org/eu"}},
		}},
		"GitLab: how many, and a path anywhere": {codeowners.GitLab, "[SRE][2] @org/sre\nprod/eu\n", map[string]codeowners.Owners{"x/prod/eu/a": sre, "prod/a": {}}},
		"GitLab: what is left out":              {codeowners.GitLab, "* @org/sre\n!*.md\n", map[string]codeowners.Owners{"a": sre, "a.md": {}}},
		"GitLab: a role is nobody":              {codeowners.GitLab, "* @@maintainer\n", map[string]codeowners.Owners{"a": {}}},
		"Gitea: each line counts":               {codeowners.Gitea, "prod/.* @ann\n.*\\\\.yaml @org/sre\n!prod/.* eve\nalone\n", map[string]codeowners.Owners{"prod/a.yaml": {Users: []string{"ann"}, Teams: []string{"org/sre"}}, "prod/a": ann, "a": {Users: []string{"eve"}}, "xprod/a": {Users: []string{"eve"}}}},
		"nothing":                               {codeowners.Gitea, "", map[string]codeowners.Owners{"a": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := codeowners.Parse(tc.kind, tc.text)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]codeowners.Owners{}
			for path := range tc.want {
				got[path] = file.Of(path)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoFileOfOwners(t *testing.T) {
	for text, want := range map[string]string{
		"a @ann\n(?!b).* @ann\n":           "line 2: the path (?!b).*: ",
		strings.Repeat("a @ann\n", 10_001): "more than 10000 lines",
	} {
		if _, err := codeowners.Parse(codeowners.Gitea, text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzParse: whatever a branch has, it is read or refused.
func FuzzParse(f *testing.F) {
	f.Add("* @ann\n[a][2] @b\n!x\n\\")
	f.Fuzz(func(_ *testing.T, text string) {
		for _, kind := range []codeowners.Kind{codeowners.GitHub, codeowners.GitLab, codeowners.Gitea} {
			if file, err := codeowners.Parse(kind, text); err == nil {
				_ = fmt.Sprint(file.Of("a/b.yaml"))
			}
		}
	})
}
