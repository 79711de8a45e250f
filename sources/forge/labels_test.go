package forge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLabelledByWriter checks who counts at each kind of forge, by answers as the forges give them.
func TestLabelledByWriter(t *testing.T) {
	const github, gitea, gitlab = "/api/v3/repos/org/repo", "/api/v1/repos/org/repo", "/api/v4/projects/org%2Frepo"
	for name, tc := range map[string]struct {
		kind    string
		answers map[string]string
		want    bool
	}{
		"GitHub: the last one counts, who may write": {"github", map[string]string{
			"GET " + github + "/issues/7/events?per_page=100&page=1": `[{"event":"labeled","actor":{"login":"eve"},"label":{"name":"ok"}},{"event":"unlabeled","actor":{"login":"eve"},"label":{"name":"ok"}},{"event":"labeled","actor":{"login":"ann"},"label":{"name":"ok"}},{"event":"labeled","actor":{"login":"eve"},"label":{"name":"other"}}]`,
			"GET " + github + "/collaborators/ann/permission":        `{"permission":"write","user":{"login":"ann"}}`,
		}, true},
		"GitHub: one who may only triage": {"github", map[string]string{
			"GET " + github + "/issues/7/events?per_page=100&page=1": `[{"event":"labeled","actor":{"login":"tim"},"label":{"name":"ok"}}]`,
			"GET " + github + "/collaborators/tim/permission":        `{"permission":"read","role_name":"triage"}`,
		}, false},
		"GitHub: nobody did": {"github", map[string]string{"GET " + github + "/issues/7/events?per_page=100&page=1": `[]`}, false},
		"Gitea: an owner": {"gitea", map[string]string{
			"GET " + gitea + "/issues/7/timeline?limit=50&page=1": `[{"type":"label","body":"1","user":{"login":"ann"},"label":{"id":3,"name":"ok"}},{"type":"label","body":"","user":{"login":"eve"},"label":{"id":3,"name":"ok"}},{"type":"comment","body":"1","user":{"login":"eve"},"label":null}]`,
			"GET " + gitea + "/issues/7/timeline?limit=50&page=2": `null`,
			"GET " + gitea + "/collaborators/ann/permission":      `{"permission":"owner"}`,
		}, true},
		"Gitea, which does not say that a list goes on: the last one of another page": {"gitea", map[string]string{
			"GET " + gitea + "/issues/7/timeline?limit=50&page=1": `[{"type":"label","body":"1","user":{"login":"ann"},"label":{"id":3,"name":"ok"}}]`,
			"GET " + gitea + "/issues/7/timeline?limit=50&page=2": `[{"type":"label","body":"1","user":{"login":"eve"},"label":{"id":3,"name":"ok"}}]`,
			"GET " + gitea + "/issues/7/timeline?limit=50&page=3": `[]`,
			"GET " + gitea + "/collaborators/eve/permission":      `{"permission":"read"}`,
		}, false},
		"Gitea: one who may only read": {"gitea", map[string]string{
			"GET " + gitea + "/issues/7/timeline?limit=50&page=1": `[{"type":"label","body":"1","user":{"login":"a/b"},"label":{"id":3,"name":"ok"}}]`,
			"GET " + gitea + "/issues/7/timeline?limit=50&page=2": `[]`,
			"GET " + gitea + "/collaborators/a%2Fb/permission":    `{"permission":"read"}`,
		}, false},
		"GitLab: a developer": {"gitlab", map[string]string{
			"GET " + gitlab + "/merge_requests/7/resource_label_events?per_page=100&page=1": `[{"action":"add","user":{"id":9},"label":{"name":"ok"}},{"action":"add","user":{"id":8},"label":null}]`,
			"GET " + gitlab + "/members/all/9":                                              `{"id":9,"access_level":30,"state":"active"}`,
		}, true},
		"GitLab: a reporter": {"gitlab", map[string]string{
			"GET " + gitlab + "/merge_requests/7/resource_label_events?per_page=100&page=1": `[{"action":"add","user":{"id":9},"label":{"name":"ok"}}]`,
			"GET " + gitlab + "/members/all/9":                                              `{"id":9,"access_level":20,"state":"active"}`,
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for asked, answer := range tc.answers {
				tc.answers[asked] = "200 " + answer
			}
			s := newScript(t, tc.answers)
			got, err := reviewer(t, tc.kind, s.server.URL+"/org/repo").LabelledByWriter(t.Context(), 7, "ok")
			if got != tc.want || err != nil || len(s.got) != len(tc.answers) {
				t.Errorf("%v, %v after %q; want %v", got, err, s.got, tc.want)
			}
		})
	}
	t.Run("somebody who is no member", func(t *testing.T) {
		s := newScript(t, map[string]string{
			"GET " + gitlab + "/merge_requests/7/resource_label_events?per_page=100&page=1": `200 [{"action":"add","user":{"id":9},"label":{"name":"ok"}}]`,
			"GET " + gitlab + "/members/all/9":                                              "404 {}",
		})
		if got, err := reviewer(t, "gitlab", s.server.URL+"/org/repo").LabelledByWriter(t.Context(), 7, "ok"); got || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("a forge that does not say", func(t *testing.T) {
		s := newScript(t, map[string]string{"GET " + gitea + "/issues/7/timeline?limit=50&page=1": "403 {}"})
		if got, err := reviewer(t, "gitea", s.server.URL+"/org/repo").LabelledByWriter(t.Context(), 7, "ok"); got || err == nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestUnlabel(t *testing.T) {
	for kind, tc := range map[string]struct {
		answers map[string]string
		want    []string
	}{
		"github": {map[string]string{"DELETE /api/v3/repos/org/repo/issues/7/labels/review%20it": "200 []"}, []string{"DELETE /api/v3/repos/org/repo/issues/7/labels/review%20it"}},
		"gitea": {map[string]string{"GET /api/v1/repos/org/repo/issues/7/labels": `200 [{"id":1,"name":"x"},{"id":3,"name":"review it"}]`, "DELETE /api/v1/repos/org/repo/issues/7/labels/3": "204 "},
			[]string{"GET /api/v1/repos/org/repo/issues/7/labels", "DELETE /api/v1/repos/org/repo/issues/7/labels/3"}},
		"gitlab": {map[string]string{"PUT /api/v4/projects/org%2Frepo/merge_requests/7": "200 {}"}, []string{`PUT /api/v4/projects/org%2Frepo/merge_requests/7 {"remove_labels":"review it"}`}},
	} {
		t.Run(kind, func(t *testing.T) {
			s := newScript(t, tc.answers)
			if err := reviewer(t, kind, s.server.URL+"/org/repo").Unlabel(t.Context(), 7, "review it"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
