package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// followTemplate is what connects a repository to the fleet, as an administrator.
const followTemplate = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: default}]
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: src, namespace: %[1]s}
spec:
%[2]s
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: %[1]s}
spec:
%[3]s
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: commits, namespace: %[1]s}
spec: {type: git-notes}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: commits, namespace: %[1]s}
spec:
  providerRef: {name: commits}
  eventSources:
    - {kind: Kustomization, name: "*"}
`

// follow makes the fleet follow the repository and returns the namespace that
// the objects for it are in, named like the test. The lines given are put into
// the specs of the GitRepository and the Kustomization.
func (w *world) follow(t *testing.T, url, sourceLines, applyLines string) string {
	t.Helper()
	namespace := fleet.NameOf(t)
	source := lines("url: "+url, "interval: 1s", "ref: {branch: main}").with(sourceLines)
	apply := lines("sourceRef: {kind: GitRepository, name: src}", "path: ./app", "interval: 1m",
		"retryInterval: 1s", "timeout: 2m", "prune: true", "wait: true").with(applyLines)
	w.Apply(t, fmt.Sprintf(followTemplate, namespace, source, apply))
	t.Cleanup(func() { w.unfollow(t, namespace) })
	return namespace
}

// unfollow deletes a namespace's Kustomizations while their account still has its
// rights, and waits until what they applied is deleted.
func (w *world) unfollow(t *testing.T, namespace string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), slack*time.Minute)
	defer cancel()
	if _, err := run(ctx, nil, "flotilla", "kubectl", "--kubeconfig", w.Hub.Kubeconfig, "delete", "kustomizations", "--all", "-n", namespace); err != nil {
		t.Errorf("%v\n%s", err, w.Evidence(t))
	}
}

type specLines []string

func lines(list ...string) specLines { return list }

// with adds lines, each in place of one with the same key.
func (l specLines) with(added string) string {
	all := slices.Clone(l)
	for line := range strings.SplitSeq(strings.TrimSpace(added), "\n") {
		key, _, _ := strings.Cut(line, ":")
		all = slices.DeleteFunc(all, func(have string) bool { return strings.HasPrefix(have, key+":") })
		all = append(all, line)
	}
	return "  " + strings.Join(all, "\n  ")
}

// applied waits until the Kustomization is ready at the commit.
func (w *world) applied(t *testing.T, namespace, commit string, within time.Duration) {
	t.Helper()
	eventually(t, within, "the commit "+commit[:8]+" is applied and healthy", func(ctx context.Context) error {
		var ks kustomizev1.Kustomization
		if err := w.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "app"}, &ks); err != nil {
			return err
		}
		ready := apimeta.FindStatusCondition(ks.Status.Conditions, "Ready")
		if ready == nil || ready.Status != metav1.ConditionTrue || !strings.HasSuffix(ks.Status.LastAppliedRevision, commit) {
			return fmt.Errorf("applied is %q, attempted %q, Ready is %+v", ks.Status.LastAppliedRevision, ks.Status.LastAttemptedRevision, ready)
		}
		return nil
	})
}

// refused waits until an object's Ready condition is False with the reason,
// and returns its message.
func (w *world) refused(t *testing.T, kind, namespace string, reason ...string) string {
	t.Helper()
	message := ""
	eventually(t, 30*time.Second, fmt.Sprintf("%s is refused with reason %v", kind, reason), func(ctx context.Context) error {
		conditions, err := w.conditions(ctx, kind, namespace)
		if err != nil {
			return err
		}
		ready := apimeta.FindStatusCondition(conditions, "Ready")
		if ready == nil || ready.Status != metav1.ConditionFalse || !slices.Contains(reason, ready.Reason) {
			return fmt.Errorf("Ready is %+v", ready)
		}
		message = ready.Message
		return nil
	})
	return message
}

func (w *world) conditions(ctx context.Context, kind, namespace string) ([]metav1.Condition, error) {
	switch kind {
	case "GitRepository":
		var obj sourcev1.GitRepository
		err := w.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "src"}, &obj)
		return obj.Status.Conditions, err
	case "Kustomization":
		var obj kustomizev1.Kustomization
		err := w.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "app"}, &obj)
		return obj.Status.Conditions, err
	default:
		return nil, fmt.Errorf("no conditions are read of kind %q", kind)
	}
}

// reported waits until the commit's note says so.
func (r *repository) reported(t *testing.T, commit, want string) {
	t.Helper()
	eventually(t, time.Minute, "the commit "+commit[:8]+" carries "+want, func(context.Context) error {
		if note := r.note(commit); !strings.Contains(note, want) {
			return fmt.Errorf("its note is %q", note)
		}
		return nil
	})
}

// byHandApp is a small application with its policy, for every cluster.
const byHandApp = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: %[2]q}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {clusterNames: [east, edge, west]}
`
