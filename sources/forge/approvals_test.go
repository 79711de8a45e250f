package forge_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestApprovers checks who approves of a head at each kind of forge, by answers as the forges give them.
func TestApprovers(t *testing.T) {
	const github, gitea, gitlab = "/api/v3/repos/org/repo", "/api/v1/repos/org/repo", "/api/v4/projects/org%2Frepo"
	head, other := hash("a"), hash("b")
	review := func(login, state, commit string) string {
		return fmt.Sprintf(`{"id":1,"user":{"login":%q},"body":"LGTM","state":%q,"commit_id":%q,"author_association":"MEMBER"}`, login, state, commit)
	}
	giteaReview := func(login, state, commit string, dismissed bool) string {
		return fmt.Sprintf(`{"id":1,"user":{"login":%q},"team":null,"state":%q,"commit_id":%q,"stale":false,"official":true,"dismissed":%t}`, login, state, commit, dismissed)
	}
	approved := func(users string) string { return `{"iid":7,"approved":true,"approved_by":[` + users + `]}` }
	ann := `{"user":{"id":9,"username":"ann","state":"active"}}`
	versions := `[{"id":3,"head_commit_sha":"` + head + `","created_at":"2026-01-02T10:00:00.500Z"}]`
	note := func(author int, system bool, body, at string) string {
		return fmt.Sprintf(`{"id":1,"body":%q,"system":%t,"author":{"id":%d},"created_at":"2026-01-02T%sZ"}`, body, system, author, at)
	}
	const approvedIt = "approved this merge request"
	const notes = "GET " + gitlab + "/merge_requests/7/notes?sort=desc&order_by=created_at&per_page=100&page=1"
	of := func(version string, list ...string) map[string]string {
		answers := map[string]string{
			"GET " + gitlab + "/merge_requests/7/approvals":                  approved(ann),
			"GET " + gitlab + "/merge_requests/7/versions?per_page=1&page=1": version,
		}
		for _, one := range list {
			answers[notes] = "[" + one + "]"
		}
		return answers
	}
	list := func(path string, all ...string) map[string]string {
		text := "["
		for i, one := range all {
			if i > 0 {
				text += ","
			}
			text += one
		}
		return map[string]string{"GET " + path: text + "]"}
	}
	giteaList := func(all ...string) map[string]string {
		answers := list(gitea+"/pulls/7/reviews?limit=50&page=1", all...)
		answers["GET "+gitea+"/pulls/7/reviews?limit=50&page=2"] = "[]"
		return answers
	}
	const githubList = github + "/pulls/7/reviews?per_page=100&page=1"
	for name, tc := range map[string]struct {
		kind    string
		answers map[string]string
		want    []string
	}{
		"GitHub: each of this head":    {"github", list(githubList, review("zoe", "APPROVED", head), review("ann", "COMMENTED", head), review("ann", "APPROVED", head), review("ann", "COMMENTED", head)), []string{"ann", "zoe"}},
		"GitHub: of an older head":     {"github", list(githubList, review("ann", "APPROVED", other)), nil},
		"GitHub: dismissed":            {"github", list(githubList, review("ann", "DISMISSED", head)), nil},
		"GitHub: taken back":           {"github", list(githubList, review("ann", "APPROVED", head), review("ann", "CHANGES_REQUESTED", head)), nil},
		"GitHub: again":                {"github", list(githubList, review("ann", "DISMISSED", head), review("ann", "APPROVED", head)), []string{"ann"}},
		"GitHub: one who is gone":      {"github", list(githubList, `{"user":null,"state":"APPROVED","commit_id":"`+head+`"}`), nil},
		"Gitea: of this head":          {"gitea", giteaList(giteaReview("bob", "COMMENT", head, false), giteaReview("ann", "APPROVED", head, false)), []string{"ann"}},
		"Gitea: of an older head":      {"gitea", giteaList(giteaReview("ann", "APPROVED", other, false)), nil},
		"Gitea: dismissed":             {"gitea", giteaList(giteaReview("ann", "APPROVED", head, true)), nil},
		"Gitea: taken back":            {"gitea", giteaList(giteaReview("ann", "APPROVED", head, false), giteaReview("ann", "REQUEST_CHANGES", head, false)), nil},
		"Gitea: a team is asked":       {"gitea", giteaList(`{"user":null,"team":{"id":1},"state":"REQUEST_REVIEW","commit_id":""}`), nil},
		"GitLab: nobody":               {"gitlab", map[string]string{"GET " + gitlab + "/merge_requests/7/approvals": approved("")}, nil},
		"GitLab: since it was pushed":  {"gitlab", of(versions, note(9, true, approvedIt, "10:00:00.501")), []string{"ann"}},
		"GitLab: before it was pushed": {"gitlab", of(versions, note(9, true, approvedIt, "10:00:00.500")), nil},
		"GitLab: somebody else since":  {"gitlab", of(versions, note(8, true, approvedIt, "11:00:00")), nil},
		"GitLab: in words alone":       {"gitlab", of(versions, note(9, false, approvedIt, "11:00:00")), nil},
		"GitLab: another head":         {"gitlab", of(`[{"id":4,"head_commit_sha":"` + other + `","created_at":"2026-01-02T10:00:00Z"}]`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			for asked, answer := range tc.answers {
				tc.answers[asked] = "200 " + answer
			}
			s := newScript(t, tc.answers)
			found, err := reviewer(t, tc.kind, s.server.URL+"/org/repo").Approvers(t.Context(), 7, head)
			var got []string
			for _, one := range found {
				got = append(got, one.Login)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil || len(s.got) != len(tc.answers) {
				t.Errorf("%v after %q; approvers (-want +got):\n%s", err, s.got, diff)
			}
		})
	}
	t.Run("a forge that does not say", func(t *testing.T) {
		for kind, asked := range map[string]string{"github": githubList, "gitea": gitea + "/pulls/7/reviews?limit=50&page=1", "gitlab": gitlab + "/merge_requests/7/approvals"} {
			s := newScript(t, map[string]string{"GET " + asked: "403 {}"})
			if got, err := reviewer(t, kind, s.server.URL+"/org/repo").Approvers(t.Context(), 7, head); len(got) > 0 || err == nil {
				t.Errorf("%s: %v, %v", kind, got, err)
			}
		}
	})
}

// TestInTeam checks who is in a team at each kind of forge.
func TestInTeam(t *testing.T) {
	const github, gitea, gitlab = "/api/v3", "/api/v1", "/api/v4"
	of := map[string]map[string]string{
		"github": {"GET " + github + "/repos/org/repo/pulls/7/reviews?per_page=100&page=1": `200 [{"user":{"login":"ann"},"state":"APPROVED","commit_id":"` + hash("a") + `"}]`},
		"gitea": {
			"GET " + gitea + "/repos/org/repo/pulls/7/reviews?limit=50&page=1": `200 [{"user":{"login":"ann"},"state":"APPROVED","commit_id":"` + hash("a") + `"}]`,
			"GET " + gitea + "/repos/org/repo/pulls/7/reviews?limit=50&page=2": `200 []`,
		},
		"gitlab": {
			"GET " + gitlab + "/projects/org%2Frepo/merge_requests/7/approvals":                                               `200 {"approved_by":[{"user":{"id":9,"username":"ann","state":"active"}}]}`,
			"GET " + gitlab + "/projects/org%2Frepo/merge_requests/7/versions?per_page=1&page=1":                              `200 [{"head_commit_sha":"` + hash("a") + `","created_at":"2026-01-02T10:00:00Z"}]`,
			"GET " + gitlab + "/projects/org%2Frepo/merge_requests/7/notes?sort=desc&order_by=created_at&per_page=100&page=1": `200 [{"system":true,"body":"approved this merge request","author":{"id":9},"created_at":"2026-01-02T11:00:00Z"}]`,
		},
	}
	const search = "/teams/search?include_desc=false&limit=50&q=sre"
	for name, tc := range map[string]struct {
		kind, team string
		answers    map[string]string
		want       bool
	}{
		"GitHub":                                {"github", "acme/sre", map[string]string{github + "/orgs/acme/teams/sre/memberships/ann": `200 {"state":"active","role":"member"}`}, true},
		"GitHub, of the repository's own":       {"github", "sre", map[string]string{github + "/orgs/org/teams/sre/memberships/ann": `200 {"state":"active"}`}, true},
		"GitHub, one who is only invited":       {"github", "acme/sre", map[string]string{github + "/orgs/acme/teams/sre/memberships/ann": `200 {"state":"pending"}`}, false},
		"GitHub, somebody else":                 {"github", "acme/sre", map[string]string{github + "/orgs/acme/teams/sre/memberships/ann": `404 {}`}, false},
		"Gitea":                                 {"gitea", "acme/sre", map[string]string{gitea + "/orgs/acme" + search: `200 {"ok":true,"data":[{"id":2,"name":"sre-2"},{"id":3,"name":"SRE"}]}`, gitea + "/teams/3/members/ann": `200 {"login":"ann"}`}, true},
		"Gitea, somebody else":                  {"gitea", "acme/sre", map[string]string{gitea + "/orgs/acme" + search: `200 {"ok":true,"data":[{"id":3,"name":"sre"}]}`, gitea + "/teams/3/members/ann": `404 {}`}, false},
		"Gitea, a team that is not there":       {"gitea", "acme/sre", map[string]string{gitea + "/orgs/acme" + search: `200 {"ok":true,"data":[]}`}, false},
		"GitLab":                                {"gitlab", "acme/sre", map[string]string{gitlab + "/groups/acme%2Fsre/members/all/9": `200 {"id":9,"state":"active","access_level":30}`}, true},
		"GitLab, one who is blocked":            {"gitlab", "acme/sre", map[string]string{gitlab + "/groups/acme%2Fsre/members/all/9": `200 {"id":9,"state":"blocked"}`}, false},
		"GitLab, a group that cannot be seen":   {"gitlab", "acme/sre", map[string]string{gitlab + "/groups/acme%2Fsre/members/all/9": `404 {}`}, false},
		"a name that would lead somewhere else": {"github", "../../user", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]string{}
			for asked, answer := range of[tc.kind] {
				answers[asked] = answer
			}
			for asked, answer := range tc.answers {
				answers["GET "+asked] = answer
			}
			s := newScript(t, answers)
			r := reviewer(t, tc.kind, s.server.URL+"/org/repo")
			who, err := r.Approvers(t.Context(), 7, hash("a"))
			if err != nil || len(who) != 1 {
				t.Fatalf("approvers: %v, %v", who, err)
			}
			if got, err := r.InTeam(t.Context(), tc.team, who[0]); got != tc.want || err != nil || len(s.got) != len(answers) {
				t.Errorf("%v, %v after %q; want %v", got, err, s.got, tc.want)
			}
		})
	}
}
