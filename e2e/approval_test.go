package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const approving = `
apiVersion: gitops.flotilla.io/v1alpha1
kind: PullRequestReview
metadata: {name: src, namespace: %s}
spec:
  sourceRef: {name: src}
  providerRef: {name: commits}
  interval: 10s
  commands: [explain]
  approvals:
    - name: europe
      clusters: {names: [east]}
      by: {users: [ann], teams: [acme/sre]}
    - name: owners
      clusters: {names: [east]}
      by: {codeOwners: true}
`

// TestApprovals: a pull request that reaches a cluster is pending until those who answer for it have approved of its head at a real
// forge; a review that is dismissed counts no more, and another head needs it anew. Who may write has a command answered.
func TestApprovals(t *testing.T) {
	f := startForge(t)
	repo := f.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", fmt.Sprintf(reviewed, namespace, "1.29"))
	repo.write("CODEOWNERS", "app/.* @ann @acme/sre\n")
	first := repo.push("the application")
	address, api := strings.TrimSuffix(repo.url, ".git"), fmt.Sprintf("/api/v1/repos/%s/%s", f.owner, namespace)
	for _, name := range []string{"ann", "sam", "eve", "zed"} {
		f.must(t, http.MethodPost, "/api/v1/admin/users", map[string]any{"username": name, "email": name + "@example.com", "password": "fleet-e2e-password", "must_change_password": false})
		if name == "zed" {
			continue // anybody may comment on a pull request of a public repository
		}
		f.must(t, http.MethodPut, api+"/collaborators/"+name, map[string]any{"permission": "write"})
	}
	f.must(t, http.MethodPost, "/api/v1/orgs", map[string]any{"username": "acme"})
	team := f.numbered(t, http.MethodPost, "/api/v1/orgs/acme/teams", map[string]any{"name": "sre", "permission": "read", "units": []string{"repo.code"}})
	the.follow(t, repo.url, "interval: 1h\nsecretRef: {name: forge}", "suspend: true")
	the.Apply(t, fmt.Sprintf(forgeAccess, namespace, f.token, address))
	the.Kubectl(t, "", "patch", "kustomization", "app", "-n", namespace, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	the.applied(t, namespace, first, 2*time.Minute)
	the.Apply(t, fmt.Sprintf(approving, namespace))

	repo.git("checkout", "--quiet", "-b", "next")
	push := func(version string) string {
		repo.write("app/web.yaml", fmt.Sprintf(reviewed, namespace, version))
		repo.git("add", "--all")
		repo.git("commit", "--quiet", "-m", version)
		repo.git("push", "--quiet", "origin", "next")
		return repo.git("rev-parse", "HEAD")
	}
	approve := func(who, head string) int64 {
		return f.numbered(t, http.MethodPost, api+"/pulls/1/reviews?sudo="+who, map[string]any{"event": "APPROVED", "commit_id": head})
	}
	const awaits = "awaits europe: ann or team acme/sre, and 1 more; "
	head := push("1.30")
	f.must(t, http.MethodPost, api+"/pulls", map[string]any{"base": "main", "head": "next", "title": "The next version"})
	f.ends(t, head, "flotilla/review", "pending", awaits)
	say := func(who string) {
		f.must(t, http.MethodPost, api+"/issues/1/comments?sudo="+who, map[string]any{"body": "/flotilla explain deployment/web -n " + namespace})
	}
	say("zed")
	say("ann")
	eventually(t, time.Minute, "the command of who may write is answered, alone", func(ctx context.Context) error {
		comments, err := f.comments(ctx, api)
		if err != nil {
			return err
		}
		answers := 0
		for _, text := range comments {
			if strings.HasPrefix(text, "> `/flotilla explain") && strings.Contains(text, "Deployment "+namespace+"/web") && strings.Contains(text, "PropagationPolicy "+namespace+"/web") {
				answers++
			}
		}
		if answers != 1 {
			return fmt.Errorf("%d answers in %q", answers, comments)
		}
		return nil
	})
	approve("eve", head)
	approved := approve("ann", head)
	f.ends(t, head, "flotilla/review", "success", "1 object changes in 1 cluster: 1 updated")
	f.must(t, http.MethodPost, fmt.Sprintf("%s/pulls/1/reviews/%d/dismissals", api, approved), map[string]any{"message": "not yet"})
	f.ends(t, head, "flotilla/review", "pending", awaits)

	head = push("1.31")
	f.ends(t, head, "flotilla/review", "pending", awaits)
	f.must(t, http.MethodPut, fmt.Sprintf("/api/v1/teams/%d/members/sam", team), map[string]any{})
	approve("sam", head)
	f.ends(t, head, "flotilla/review", "success", "1 object changes in 1 cluster: 1 updated")
}

// numbered makes something, and returns its number.
func (f *forge) numbered(t *testing.T, method, path string, body any) int64 {
	t.Helper()
	var made struct{ ID int64 }
	out, err := f.call(t.Context(), method, path, body)
	if err == nil {
		err = json.Unmarshal(out, &made)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}
