package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// switchedDeployments is how many Deployments one revision holds.
const switchedDeployments = 30

// switchedTo is a revision: the image, an override of each cluster that says which revision it is of,
// and one whose name is another in each revision.
const switchedTo = `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [%[3]s]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: stays, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules: [{overriders: {annotationsOverrider: [{operator: add, value: {stays: %[2]s}}]}}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: only-%[2]s, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules: [{overriders: {annotationsOverrider: [{operator: add, value: {only-%[2]s: %[2]s}}]}}]
`

// switched is a Deployment of a revision.
const switched = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%02[3]d, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: web-%02[3]d}}
  template:
    metadata: {labels: {app: web-%02[3]d}}
    spec: {containers: [{name: web, image: "nginx:%[2]s"}]}
`

// TestARevisionSwitchesAsAWhole has commits change the images, the overrides beside them, and where
// all runs: no Work ever holds parts of two revisions, and none is written twice for one.
func TestARevisionSwitchesAsAWhole(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	seen := the.watchWorks(t, namespace, "east", "west")
	commit := func(revision, clusters string) {
		content := fmt.Sprintf(switchedTo, namespace, revision, clusters)
		for i := range switchedDeployments {
			content += fmt.Sprintf(switched, namespace, revision, i)
		}
		repo.write("app/all.yaml", content)
		pushed := repo.push(revision)
		if revision == "v1" {
			the.follow(t, repo.url, "", "")
		}
		the.applied(t, namespace, pushed, 2*time.Minute)
	}
	commit("v1", "east, west")
	commit("v2", "east, west")
	commit("v3", "east")
	commit("v4", "east, west")

	want := map[string][]string{}
	for i := range switchedDeployments {
		name := fmt.Sprintf("web-%02d", i)
		want["east/"+name] = []string{"v1", "v2", "v3", "v4"}
		want["west/"+name] = []string{"v1", "v2", "gone", "v4"}
	}
	if diff := cmp.Diff(want, seen()); diff != "" {
		t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
	}
}

// watchWorks watches the Works of a namespace's Deployments in clusters; the function that it returns
// reports what each held, one after the other, by "cluster/name".
func (w *world) watchWorks(t *testing.T, namespace string, clusters ...string) func() map[string][]string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.Hub.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	hub, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	versions := map[string][]string{}
	for _, cluster := range clusters {
		events, err := hub.Watch(t.Context(), &workv1alpha1.WorkList{}, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster)))
		if err != nil {
			t.Fatal(err)
		}
		generations := map[string]int64{}
		go func() {
			for event := range events.ResultChan() {
				work, ok := event.Object.(*workv1alpha1.Work)
				if !ok || len(work.Spec.Workload.Manifests) == 0 {
					continue
				}
				var d appsv1.Deployment
				if err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &d); err != nil || d.Kind != "Deployment" || d.Namespace != namespace {
					continue
				}
				key := cluster + "/" + d.Name
				mu.Lock()
				switch {
				case event.Type == watch.Deleted:
					versions[key] = append(versions[key], "gone")
					delete(generations, key)
				case work.DeletionTimestamp == nil && work.Generation != generations[key]:
					generations[key] = work.Generation
					versions[key] = append(versions[key], partsOf(&d))
				}
				mu.Unlock()
			}
		}()
	}
	return func() map[string][]string {
		mu.Lock()
		defer mu.Unlock()
		out := map[string][]string{}
		for key, list := range versions {
			out[key] = slices.Clone(list)
		}
		return out
	}
}

// partsOf returns the revision of which a Deployment is, or all that it has parts of.
func partsOf(d *appsv1.Deployment) string {
	parts := map[string]bool{}
	for _, c := range d.Spec.Template.Spec.Containers {
		parts[strings.TrimPrefix(c.Image, "nginx:")] = true
	}
	missing := []string{"without stays", "without only"}
	for key, value := range d.Annotations {
		if key == "stays" || strings.HasPrefix(key, "only-") {
			parts[value] = true
			missing = slices.DeleteFunc(missing, func(m string) bool { return strings.HasPrefix("without "+key, m) })
		}
	}
	return strings.Join(append(slices.Sorted(maps.Keys(parts)), missing...), "+")
}
