package forge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSaid checks what is read of comments, and who may command, at each kind of forge.
func TestSaid(t *testing.T) {
	const github, gitea, gitlab = "GET /api/v3/repos/org/repo", "GET /api/v1/repos/org/repo", "GET /api/v4/projects/org%2Frepo"
	since := time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)
	comment := func(id int, login, body, at string) string {
		return fmt.Sprintf(`{"id":%d,"body":%q,"user":{"login":%q},"created_at":"2026-01-02T%s:00Z","updated_at":"2026-01-02T12:00:00Z"}`, id, body, login, at)
	}
	note := func(id, author int, system bool, body, at string) string {
		return fmt.Sprintf(`{"id":%d,"body":%q,"system":%t,"author":{"id":%d,"username":"ann"},"created_at":"2026-01-02T%s:00.5Z"}`, id, body, system, author, at)
	}
	const from = "?since=2026-01-02T09%3A00%3A00Z"
	for name, tc := range map[string]struct {
		kind    string
		answers map[string]string
		want    []string
	}{
		"GitHub, one that is older and was edited": {"github", map[string]string{
			github + "/issues/7/comments" + from + "&per_page=100&page=1": "[" + comment(3, "ann", "b", "10:00") + "," + comment(2, "eve", "a", "09:30") + "," + comment(1, "ann", "old", "08:00") + "]",
			github + "/collaborators/ann/permission":                      `{"permission":"write"}`, github + "/collaborators/eve/permission": `{"permission":"read"}`,
		}, []string{"2 a false", "3 b true"}},
		"Gitea": {"gitea", map[string]string{
			gitea + "/issues/7/comments" + from:     "[" + comment(2, "ann", "a", "09:30") + "]",
			gitea + "/collaborators/ann/permission": `{"permission":"owner"}`,
		}, []string{"2 a true"}},
		"GitLab": {"gitlab", map[string]string{
			gitlab + "/merge_requests/7/notes?sort=desc&order_by=created_at&per_page=100&page=1": "[" + note(4, 9, true, "approved this merge request", "11:00") + "," + note(3, 9, false, "b", "10:00") + "," + note(2, 8, false, "a", "09:30") + "]",
			gitlab + "/members/all/9": `{"access_level":40,"state":"active"}`, gitlab + "/members/all/8": `{"access_level":10,"state":"active"}`,
		}, []string{"2 a false", "3 b true"}},
	} {
		t.Run(name, func(t *testing.T) {
			for asked, answer := range tc.answers {
				tc.answers[asked] = "200 " + answer
			}
			s := newScript(t, tc.answers)
			r := reviewer(t, tc.kind, s.server.URL+"/org/repo")
			said, err := r.Said(t.Context(), 7, since)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range said {
				writer, err := r.SaidByWriter(t.Context(), one)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%d %s %v", one.ID, one.Text, writer))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(s.got) != len(tc.answers) {
				t.Errorf("after %q (-want +got):\n%s", s.got, diff)
			}
		})
	}
}
