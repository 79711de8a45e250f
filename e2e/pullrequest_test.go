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

const pullRequestAccess = `
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: comments, namespace: %[1]s}
spec:
  type: giteapullrequestcomment
  address: %[2]s
  secretRef: {name: forge}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: comments, namespace: %[1]s}
spec:
  providerRef: {name: comments}
  eventSources:
    - {kind: Kustomization, name: app}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: next, namespace: %[1]s}
spec: {url: %[2]s, interval: 1s, ref: {branch: next}, secretRef: {name: forge}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: next, namespace: %[1]s}
spec: {sourceRef: {kind: GitRepository, name: next}, path: ./next, interval: 1m, prune: true, wait: true, suspend: true}
`

const nextSettings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: next, namespace: %[1]s}
data: {size: large}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: next, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: next}]
  placement: {clusterAffinity: {clusterNames: [east, west]}}
`

// TestPullRequest: a branch whose status is required cannot be merged before it runs in its clusters, and can
// be afterwards; then one comment under the pull request reports what becomes of the merge in each cluster.
func TestPullRequest(t *testing.T) {
	f := startForge(t)
	repo := f.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, namespace, "nginx:1.29"))
	repo.push("the application")
	repo.git("checkout", "--quiet", "-b", "next")
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, namespace, "nginx:1.30"))
	repo.write("next/settings.yaml", fmt.Sprintf(nextSettings, namespace))
	repo.git("add", "--all")
	repo.git("commit", "--quiet", "-m", "the next version")
	repo.git("push", "--quiet", "origin", "next")
	head := repo.git("rev-parse", "HEAD")

	address := strings.TrimSuffix(repo.url, ".git")
	the.follow(t, repo.url, "secretRef: {name: forge}", "")
	the.Apply(t, fmt.Sprintf(forgeAccess, namespace, f.token, address))
	the.Apply(t, fmt.Sprintf(pullRequestAccess, namespace, address))
	api := fmt.Sprintf("/api/v1/repos/%s/%s", f.owner, namespace)
	f.must(t, http.MethodPost, api+"/branch_protections", map[string]any{"rule_name": "main", "enable_push": true, "enable_status_check": true, "status_check_contexts": []string{"flotilla/next"}})
	f.must(t, http.MethodPost, api+"/pulls", map[string]any{"base": "main", "head": "next", "title": "The next version"})

	if _, err := f.call(t.Context(), http.MethodPost, api+"/pulls/1/merge", map[string]any{"Do": "merge"}); err == nil {
		t.Fatal("it was merged before the status that is required")
	}
	the.Kubectl(t, "", "patch", "kustomization", "next", "-n", namespace, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	f.ends(t, head, "flotilla/next", "success", "1 ready")
	eventually(t, time.Minute, "the pull request is merged", func(ctx context.Context) error {
		_, err := f.call(ctx, http.MethodPost, api+"/pulls/1/merge", map[string]any{"Do": "merge"})
		return err
	})
	repo.git("fetch", "--quiet", "origin", "main")
	merged := repo.git("rev-parse", "FETCH_HEAD")
	the.applied(t, namespace, merged, 2*time.Minute)

	want := fmt.Sprintf("### `flotilla/src`: ✅ runs everywhere at `%s`\n\n`1 ready`\n\n| cluster | | what |\n| --- | --- | --- |\n"+
		"| `east` `edge` `west` | ✅ runs it | |\n\n| Kustomization | | what |\n| --- | --- | --- |\n| `app` | ✅ ready | `3/3 clusters ready` |\n\n<!-- flotilla:", merged[:8])
	eventually(t, time.Minute, "one comment tells of each cluster", func(ctx context.Context) error {
		comments, err := f.comments(ctx, api)
		if err != nil || len(comments) != 1 || !strings.HasPrefix(comments[0], want) {
			return fmt.Errorf("there are %d: %q: %w, want one that begins with %q", len(comments), comments, err, want)
		}
		return nil
	})
}

// comments are those under pull request 1.
func (f *forge) comments(ctx context.Context, api string) ([]string, error) {
	out, err := f.call(ctx, http.MethodGet, api+"/issues/1/comments", nil)
	if err != nil {
		return nil, err
	}
	var list []struct{ Body string }
	err = json.Unmarshal(out, &list)
	var bodies []string
	for _, c := range list {
		bodies = append(bodies, c.Body)
	}
	return bodies, err
}

func (f *forge) must(t *testing.T, method, path string, body any) {
	t.Helper()
	if _, err := f.call(t.Context(), method, path, body); err != nil {
		t.Fatal(err)
	}
}
