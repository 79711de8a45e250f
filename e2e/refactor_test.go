package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestACommitThatDropsItsNamespace takes the manifest of a namespace out of a repository, and leaves
// what is in it: nothing goes until the commit itself says so.
func TestACommitThatDropsItsNamespace(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	inner := namespace + "-in"
	repo.write("app/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+inner+"}\n")
	repo.write("app/web.yaml", good(inner))
	repo.write("app/other.yaml", strings.ReplaceAll(good(namespace), "name: web", "name: other"))
	first := repo.push("good")
	the.follow(t, repo.url, "", "")
	the.applied(t, namespace, first, 2*time.Minute)

	repo.write("app/namespace.yaml", "")
	bad := repo.push("tidy up")
	message := the.refused(t, "Kustomization", namespace, "PruneBlocked")
	for _, part := range []string{"Namespace/" + inner + " with ", `: "namespace/` + inner + `"`} {
		if !strings.Contains(message, part) {
			t.Errorf("the message does not say %q: %s", part, message)
		}
	}
	repo.reported(t, bad, "failure")
	space := &corev1.Namespace{}
	if err := the.hub.Get(t.Context(), types.NamespacedName{Name: inner}, space); err != nil || space.DeletionTimestamp != nil {
		t.Errorf("the namespace did not stay: %v, %v", err, space.DeletionTimestamp)
	}

	repo.write("app/web.yaml", "")
	last := repo.push("retire the inner shop\n\nFlotilla-Allow-Delete: namespace/" + inner + ", deployment/" + inner + "/web, propagationpolicy/" + inner + "/web")
	the.applied(t, namespace, last, 2*time.Minute)
	eventually(t, time.Minute, "the namespace is gone", func(ctx context.Context) error {
		err := the.hub.Get(ctx, types.NamespacedName{Name: inner}, space)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	repo.reported(t, last, "success")
}

// TestACommitThatMistypesACluster: the cluster that was meant keeps the application, and the commit says
// what is wrong. It goes where a person says so.
func TestACommitThatMistypesACluster(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", good(namespace))
	first := repo.push("good")
	the.follow(t, repo.url, "", "")
	the.applied(t, namespace, first, 2*time.Minute)
	repo.reported(t, first, "success")
	before := the.incarnations(t, namespace, "web")

	app, _, _ := strings.Cut(good(namespace), "  placement:")
	repo.write("app/web.yaml", app+"  placement: {clusterAffinity: {clusterNames: [east, wst]}}\n")
	bad := repo.push("narrow")
	repo.reported(t, bad, "failure")
	repo.reported(t, bad, "clusterNames names wst, which does not exist (did you mean west?)")
	the.refused(t, "Kustomization", namespace, "UnknownCluster")
	if diff := cmp.Diff(before, the.incarnations(t, namespace, "web")); diff != "" {
		t.Errorf("the Deployment (-before +after):\n%s", diff)
	}

	repo.write("app/web.yaml", "# as it is meant\n"+repo.read("app/web.yaml"))
	allowed := repo.push("Narrow\n\nFlotilla-Allow-Delete: propagationpolicy/" + namespace + "/web")
	eventually(t, time.Minute, "west and edge have lost it", func(ctx context.Context) error {
		for _, name := range []string{"west", "edge"} {
			err := the.members[name].Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web"}, &appsv1.Deployment{})
			if !apierrors.IsNotFound(err) {
				return errors.Join(fmt.Errorf("it is in %s at %s", name, allowed), err)
			}
		}
		return nil
	})
	the.applied(t, namespace, allowed, 2*time.Minute)
	the.says(t, namespace, "; Deployment "+namespace+"/web: clusterNames names wst, which does not exist (did you mean west?)")
}

// TestAContestedCommit is not done before somebody says which policy is meant.
func TestAContestedCommit(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", good(namespace))
	first := repo.push("good")
	the.follow(t, repo.url, "", "")
	the.applied(t, namespace, first, 2*time.Minute)
	repo.reported(t, first, "success")

	better := "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: better, namespace: " + namespace + "}\nspec:\n" +
		"  priority: 10\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]\n  placement: {clusterAffinity: {clusterNames: [east, west, edge]}}\n"
	repo.write("app/better.yaml", better)
	second := repo.push("better")
	the.applied(t, namespace, second, 2*time.Minute)
	const kept = "not taken up: Deployment %[1]s/web by PropagationPolicy %[1]s/better"
	the.says(t, namespace, fmt.Sprintf(kept, namespace))
	repo.reported(t, second, fmt.Sprintf(kept, namespace))
	repo.reported(t, second, "pending")

	repo.write("app/better.yaml", better+"  preemption: Always\n")
	third := repo.push("it is the one that is meant")
	the.applied(t, namespace, third, 2*time.Minute)
	repo.reported(t, third, "success")
}

// says waits until Ready of the Kustomization says so.
func (w *world) says(t *testing.T, namespace, want string) {
	t.Helper()
	eventually(t, time.Minute, "Ready says "+want, func(ctx context.Context) error {
		conditions, err := w.conditions(ctx, "Kustomization", namespace)
		if err != nil {
			return err
		}
		if ready := apimeta.FindStatusCondition(conditions, "Ready"); ready == nil || !strings.Contains(ready.Message, want) {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
}

// childOf is a Kustomization of the repository that a namespace follows.
const childOf = `---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: %s}
spec: {interval: 1m, retryInterval: 1s, timeout: 2m, prune: true, wait: true, path: ./%[1]s, sourceRef: {kind: GitRepository, name: src}%[3]s}
`

// TestARefactoringTakesNothingDown moves a Deployment to a Kustomization that depends on the one it
// was in, and renames another Kustomization with all that it applied, in one commit.
func TestARefactoringTakesNothingDown(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: " + namespace + "}\n"
	other := strings.ReplaceAll(good(namespace), "name: web", "name: other")
	children := func(names ...string) string {
		out := ""
		for _, name := range names {
			after := ""
			if name == "late" {
				after = ", dependsOn: [{name: base}]"
			}
			out += fmt.Sprintf(childOf, name, namespace, after)
		}
		return out
	}
	repo.write("app/children.yaml", children("base", "late", "shop"))
	repo.write("base/web.yaml", good(namespace))
	repo.write("base/config.yaml", fmt.Sprintf(config, "base"))
	repo.write("late/config.yaml", fmt.Sprintf(config, "late"))
	repo.write("shop/other.yaml", other)
	first := repo.push("three folders")
	the.follow(t, repo.url, "", "")
	the.applied(t, namespace, first, 2*time.Minute)
	repo.reported(t, first, "success")
	before := the.incarnations(t, namespace, "web", "other")

	repo.write("app/children.yaml", children("base", "late", "store"))
	repo.write("base/web.yaml", "")
	repo.write("late/web.yaml", good(namespace))
	repo.write("shop/other.yaml", "")
	repo.write("store/other.yaml", other)
	second := repo.push("tidy up")
	the.applied(t, namespace, second, 2*time.Minute)
	eventually(t, time.Minute, "the old Kustomization is gone, and the others are ready", func(ctx context.Context) error {
		err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "shop"}, &kustomizev1.Kustomization{})
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		for _, name := range []string{"base", "late", "store"} {
			var ks kustomizev1.Kustomization
			if err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &ks); err != nil {
				return err
			}
			if !strings.HasSuffix(ks.Status.LastAppliedRevision, second) {
				return fmt.Errorf("%s has applied %s: %+v", name, ks.Status.LastAppliedRevision, ks.Status.Conditions)
			}
		}
		return nil
	})
	if diff := cmp.Diff(before, the.incarnations(t, namespace, "web", "other")); diff != "" {
		t.Errorf("the Deployments (-before +after):\n%s", diff)
	}
	repo.reported(t, second, "retired by this commit")
	if note := repo.note(second); strings.Contains(note, "left where it was") {
		t.Errorf("the commit that renames a Kustomization says:\n%s", note)
	}
}

// incarnations are the UIDs of Deployments, on the control plane and in the clusters, by "where/name".
func (w *world) incarnations(t *testing.T, namespace string, names ...string) map[string]types.UID {
	t.Helper()
	places := maps.Clone(w.members)
	places["hub"] = w.hub
	out := map[string]types.UID{}
	for place, c := range places {
		for _, name := range names {
			var d appsv1.Deployment
			if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &d); err != nil {
				t.Fatalf("%s in %s: %v", name, place, err)
			}
			out[place+"/"+name] = d.UID
		}
	}
	return out
}

// TestARenamedWorkloadGoesClusterByCluster: a Deployment gets another name, which one cluster refuses. There the old
// one runs on until that takes the new one; elsewhere it goes, and what a revert brings back is everywhere again.
func TestARenamedWorkloadGoesClusterByCluster(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]string{"applied": "wait: false", "healthy": "wait: true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := the.repository(t)
			namespace := fleet.NameOf(t)
			config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: " + namespace + "}\n"
			repo.write("app/settings.yaml", config)
			repo.write("app/web.yaml", good(namespace))
			first := repo.push("good")
			the.follow(t, repo.url, "", lines)
			the.applied(t, namespace, first, 2*time.Minute)
			repo.reported(t, first, "success")
			before := the.incarnations(t, namespace, "web")

			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("1")}}}
			if err := the.members["west"].Create(t.Context(), quota); err != nil {
				t.Fatal(err)
			}
			eventually(t, time.Minute, "the quota counts", func(ctx context.Context) error {
				if err := the.members["west"].Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil || len(quota.Status.Hard) == 0 {
					return errors.Join(errors.New("not yet"), err)
				}
				return nil
			})
			repo.write("app/web.yaml", strings.ReplaceAll(good(namespace), "name: web", "name: shop"))
			second := repo.push("another name")
			eventually(t, time.Minute, "west alone has the old one, and the others the new one", func(ctx context.Context) error {
				return the.deploymentsAre(ctx, namespace, map[string]string{"east": "shop", "edge": "shop", "west": "web", "hub": "shop web"})
			})
			if note := repo.note(second); strings.Contains(note, "success") {
				t.Errorf("the commit says %q", note)
			}
			if got := the.uid(t, "west", namespace, "web"); got != before["west/web"] {
				t.Error("west has another Deployment than before")
			}

			reverted := repo.revert()
			the.applied(t, namespace, reverted, 2*time.Minute)
			eventually(t, time.Minute, "the old one is back", func(ctx context.Context) error {
				return the.deploymentsAre(ctx, namespace, map[string]string{"east": "web", "edge": "web", "west": "web", "hub": "web"})
			})
			if got := the.uid(t, "west", namespace, "web"); got != before["west/web"] {
				t.Error("west has another Deployment than before")
			}
			repo.reported(t, reverted, "success")

			if err := the.members["west"].Delete(t.Context(), quota); err != nil {
				t.Fatal(err)
			}
			repo.write("app/web.yaml", strings.ReplaceAll(good(namespace), "name: web", "name: shop"))
			last := repo.push("another name again")
			the.applied(t, namespace, last, 2*time.Minute)
			eventually(t, time.Minute, "the new one is everywhere", func(ctx context.Context) error {
				return the.deploymentsAre(ctx, namespace, map[string]string{"east": "shop", "edge": "shop", "west": "shop", "hub": "shop"})
			})
			repo.reported(t, last, "success")
		})
	}
}

// deploymentsAre errs unless places, the control plane as "hub" among them, have just these Deployments in a
// namespace, sorted, between spaces.
func (w *world) deploymentsAre(ctx context.Context, namespace string, want map[string]string) error {
	places := maps.Clone(w.members)
	places["hub"] = w.hub
	got := map[string]string{}
	for place := range want {
		var list appsv1.DeploymentList
		if err := places[place].List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		var names []string
		for _, d := range list.Items {
			names = append(names, d.Name)
		}
		slices.Sort(names)
		got[place] = strings.Join(names, " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// uid is that of a Deployment in a cluster.
func (w *world) uid(t *testing.T, cluster, namespace, name string) types.UID {
	t.Helper()
	var d appsv1.Deployment
	if err := w.members[cluster].Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &d); err != nil {
		t.Fatal(err)
	}
	return d.UID
}
