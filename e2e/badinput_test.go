package e2e

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// good is an application that every test namespace takes.
func good(namespace string) string { return fmt.Sprintf(byHandApp, namespace, "nginx:1.29") }

// noise is text of the given length that does not compress.
func noise(length int) string {
	content := make([]byte, length/2)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	return hex.EncodeToString(content)
}

// TestBadCommits pushes a good commit and then a bad one: the bad one is
// refused with a stable reason and a message that names the file or object,
// and the good one stays.
func TestBadCommits(t *testing.T) {
	cases := map[string]struct {
		file, content string
		reason        string
		says          []string
	}{
		"a manifest that does not parse":    {"app/bad.yaml", "kind: [", "BuildFailed", []string{"bad.yaml"}},
		"a duplicate object":                {"app/again.yaml", good("NAMESPACE"), "DuplicateObject", []string{"Deployment", "web", "again.yaml"}},
		"a kind that the hub does not know": {"app/bad.yaml", "apiVersion: example.org/v1\nkind: Wish\nmetadata: {name: moon, namespace: NAMESPACE}\n", "UnknownKind|KindMissing|InvalidObject", []string{"Wish", "example.org/v1"}},
		"a namespace that does not exist":   {"app/bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost, namespace: nowhere}\n", "NamespaceMissing|NamespaceNotFound", []string{"nowhere"}},
		"a broken kustomization":            {"app/kustomization.yaml", "resources: [gone.yaml]\n", "BuildFailed", []string{"gone.yaml"}},
		"an object that the schema refuses": {"app/bad.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bad, namespace: NAMESPACE}\nspec: {replicas: many}\n", "InvalidObject", []string{"Deployment", "bad"}},
		"an object over the size limit":     {"app/bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: huge, namespace: NAMESPACE}\ndata: {a: " + noise(4<<20) + "}\n", "ObjectTooLarge", []string{"bad.yaml"}},
		"a policy that contradicts itself":  {"app/bad.yaml", "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: odd, namespace: NAMESPACE}\nspec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n  placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 2}]}\n", "InvalidObject", []string{"PropagationPolicy", "odd", "maxGroups"}},
		"a commit that would remove it all": {"app/web.yaml", "", "PruneBlocked|EmptyBuild", []string{""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := the.repository(t)
			namespace := fleet.NameOf(t)
			repo.write("app/web.yaml", good(namespace))
			first := repo.push("good")
			the.follow(t, repo.url, "", "")
			the.applied(t, namespace, first, 2*time.Minute)

			repo.write(tc.file, strings.ReplaceAll(tc.content, "NAMESPACE", namespace))
			bad := repo.push("bad")
			message := the.refused(t, "Kustomization", namespace, strings.Split(tc.reason, "|")...)
			for _, part := range tc.says {
				if !strings.Contains(message, part) {
					t.Errorf("the message does not name %q: %s", part, message)
				}
			}
			t.Log(message)
			repo.reported(t, bad, "failure")
			if err := the.hub.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web"}, &appsv1.Deployment{}); err != nil {
				t.Errorf("the good commit's object did not stay: %v", err)
			}
		})
	}
}

// TestBadSources points at repositories that cannot be read.
func TestBadSources(t *testing.T) {
	repo := the.repository(t)
	repo.write("app/web.yaml", good("default"))
	repo.push("good")
	cases := map[string]struct {
		url    string
		spec   string
		reason string
		says   string
	}{
		"a repository that is gone":         {the.Git.URL("gone"), "", "GitOperationFailed", "gone"},
		"a branch that is not there":        {repo.url, "ref: {branch: gone}", "GitOperationFailed", "gone"},
		"a tag that is not there":           {repo.url, "ref: {tag: v9}", "GitOperationFailed", "v9"},
		"a server that is not there":        {"http://127.0.0.1:1/fleet.git", "", "GitOperationFailed", "127.0.0.1:1"},
		"a secret that is not there":        {repo.url, "secretRef: {name: gone}", "AuthenticationFailed", "gone"},
		"an SSH server without known_hosts": {"ssh://git@127.0.0.1:1/fleet.git", "", "AuthenticationFailed", "known_hosts"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := the.follow(t, tc.url, tc.spec, "")
			message := the.refused(t, "GitRepository", namespace, tc.reason)
			if !strings.Contains(message, tc.says) {
				t.Errorf("the message does not name %q: %s", tc.says, message)
			}
			t.Log(message)
		})
	}
}

// TestBadApply asks for a path or a source that is not there.
func TestBadApply(t *testing.T) {
	cases := map[string]struct {
		spec   string
		reason string
		says   string
	}{
		"a path that is not there":       {"path: ./gone", "PathNotFound", "gone"},
		"a folder without manifests":     {"path: ./empty", "EmptyBuild", "empty"},
		"a dependency that is not there": {"dependsOn: [{name: gone}]", "DependencyNotReady", "gone"},
		"a source that is not there":     {"sourceRef: {kind: GitRepository, name: gone}", "ArtifactFailed", "gone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := the.repository(t)
			repo.write("app/web.yaml", good(fleet.NameOf(t)))
			repo.write("empty/README.md", "nothing here\n")
			repo.push("good")
			namespace := the.follow(t, repo.url, "", tc.spec)
			message := the.refused(t, "Kustomization", namespace, strings.Split(tc.reason, "|")...)
			if !strings.Contains(message, tc.says) {
				t.Errorf("the message does not name %q: %s", tc.says, message)
			}
			t.Log(message)
		})
	}
}
