package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const acrossRegions = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s, labels: {app: web}}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "nginx:1.29"}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {labelSelector: {matchLabels: {serves: %[1]s}}}
    spreadConstraints:
      - {spreadByField: region, minGroups: 2, maxGroups: 2}
      - {spreadByField: cluster, minGroups: 2, maxGroups: 2}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
`

// byWeight divides by fixed weights instead of by room.
const byWeight = `{"spec": {"placement": {"spreadConstraints": null, "replicaScheduling": {"weightPreference": {"dynamicWeight": null, "staticWeightList": [
  {"weight": 2, "targetCluster": {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}}},
  {"weight": 1, "targetCluster": {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["eu"]}]}}}
]}}}}}`

const perRegion = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: mirrors, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
    - targetCluster: {fieldSelector: {matchExpressions: [{key: region, operator: In, values: [eu]}]}}
      overriders:
        imageOverrider: [{component: Registry, operator: replace, value: mirror.eu.example}]
    - targetCluster: {fieldSelector: {matchExpressions: [{key: region, operator: In, values: [asia]}]}}
      overriders:
        imageOverrider: [{component: Registry, operator: replace, value: "mirror.asia.example:5000"}]
`

// regional is an application that is spread over regions.
type regional struct {
	*testing.T
	namespace string
}

// images is what runs where: the image by member.
type images map[string]string

// runs waits until the members that want names, and no others, run its images,
// with as many replicas in all as there should be and none without.
func (a regional) runs(what string, replicas int, want images) {
	a.Helper()
	a.await(what, func(got map[string]appsv1.DeploymentSpec) error {
		total := 0
		have := images{}
		for member, spec := range got {
			n := int(ptr.Deref(spec.Replicas, -1))
			if total += n; n < 1 {
				return fmt.Errorf("%s has %d replicas", member, n)
			}
			have[member] = spec.Template.Spec.Containers[0].Image
		}
		if !maps.Equal(want, have) || total != replicas {
			return fmt.Errorf("members run %d replicas of %v, want %d of %v", total, have, replicas, want)
		}
		return nil
	})
}

// divided waits until each member has exactly as many replicas as want says.
func (a regional) divided(what string, want map[string]int32) {
	a.Helper()
	a.await(what, func(got map[string]appsv1.DeploymentSpec) error {
		have := map[string]int32{}
		for member, spec := range got {
			have[member] = ptr.Deref(spec.Replicas, -1)
		}
		if !maps.Equal(want, have) {
			return fmt.Errorf("members have %v replicas, want %v", have, want)
		}
		return nil
	})
}

// await waits until check is content with what the members hold.
func (a regional) await(what string, check func(map[string]appsv1.DeploymentSpec) error) {
	a.Helper()
	eventually(a.T, time.Minute, what, func(ctx context.Context) error {
		got := map[string]appsv1.DeploymentSpec{}
		for name, member := range the.members {
			var d appsv1.Deployment
			err := member.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: "web"}, &d)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil {
				got[name] = d.Spec
			}
		}
		return check(got)
	})
}

// scale asks for another number of replicas in all.
func (a regional) scale(replicas int) {
	a.Helper()
	the.Kubectl(a.T, "", "scale", "deployment/web", "-n", a.namespace, fmt.Sprint("--replicas=", replicas))
}

// serve labels clusters for the application, and takes the label off with a dash.
func (a regional) serve(clusters ...string) {
	a.Helper()
	for _, c := range clusters {
		name, off := strings.CutSuffix(c, "-")
		label := "serves=" + a.namespace
		if off {
			label = "serves-"
		}
		the.Kubectl(a.T, "", "label", "--overwrite", "cluster", name, label)
	}
}

// patch changes the policy.
func (a regional) patch(policy string) {
	a.Helper()
	the.Kubectl(a.T, "", "patch", "propagationpolicy", "web", "-n", a.namespace, "--type=merge", "-p", policy)
}

// explains checks that explain says each of the words, once it does.
func (a regional) explains(words ...string) {
	a.Helper()
	eventually(a.T, 30*time.Second, "it is explained", func(ctx context.Context) error {
		out, err := run(ctx, nil, "flotilla", "explain", "deployment/web", "-n", a.namespace, "--kubeconfig", the.Hub.Kubeconfig)
		if err != nil {
			return err
		}
		plain := strings.Join(strings.Fields(out), " ")
		for _, w := range words {
			if !strings.Contains(plain, w) {
				return fmt.Errorf("nothing says %q in:\n%s", w, out)
			}
		}
		return nil
	})
}

// TestRegions spreads an application over two of three regions and divides it by
// weight, scales it, moves it by a cluster's label, suspends it, and overrides it
// region by region.
func TestRegions(t *testing.T) {
	a := regional{t, fleet.NameOf(t)}
	a.serve("east", "west")
	t.Cleanup(func() { unlabel(t) })
	the.Apply(t, fmt.Sprintf(acrossRegions, a.namespace))
	two := images{"east": "nginx:1.29", "west": "nginx:1.29"}
	a.runs("spread over the two regions that serve it", 6, two)
	a.explains("carried by PropagationPolicy "+a.namespace+"/web, selected by name", "1 refused by ClusterAffinity", ": edge",
		"region eu, us, wanted 2 regions")
	a.scale(9)
	a.runs("scaled up", 9, two)
	a.scale(6)
	a.runs("scaled down", 6, two)

	a.serve("edge", "west-")
	two = images{"east": "nginx:1.29", "edge": "nginx:1.29"}
	a.runs("in the other region, once a cluster lost its label", 6, two)
	a.explains("1 refused by ClusterAffinity", ": west")

	a.patch(byWeight)
	a.divided("divided by fixed weights", map[string]int32{"east": 4, "edge": 2})
	a.explains("runs on east 4, edge 2", "6 replicas divided by fixed weights")

	a.patch(`{"spec":{"suspension":{"dispatching":true}}}`)
	eventually(t, 30*time.Second, "dispatching is suspended", a.suspended)
	a.scale(3)
	the.Apply(t, fmt.Sprintf(perRegion, a.namespace))
	eventually(t, 30*time.Second, "it is decided nevertheless", a.decided("east 2, edge 1"))
	a.runs("as before while it is suspended", 6, two)
	a.patch(`{"spec":{"suspension":null}}`)
	a.divided("as decided, once it goes on", map[string]int32{"east": 2, "edge": 1})
	a.runs("from each region's mirror", 3, images{"east": "mirror.eu.example/nginx:1.29", "edge": "mirror.asia.example:5000/nginx:1.29"})
	a.explains("runs on east 2, edge 1", "OverridePolicy "+a.namespace+"/mirrors, rule 0, in east", "OverridePolicy "+a.namespace+"/mirrors, rule 1, in edge",
		`"nginx:1.29" → "mirror.eu.example/nginx:1.29"`)

	the.Kubectl(t, "", "delete", "overridepolicy", "mirrors", "-n", a.namespace)
	a.runs("without the override", 3, two)
}

// suspended is nil once the binding, decided as ever, says that nothing is sent.
func (a regional) suspended(ctx context.Context) error {
	out, err := run(ctx, nil, "flotilla", "kubectl", "--kubeconfig", the.Hub.Kubeconfig, "get", "resourcebinding", "web-deployment", "-n", a.namespace,
		"-o", `jsonpath={.status.conditions[?(@.type=="Scheduled")].status} {.spec.suspension.dispatching}`)
	if err == nil && out != "True true" {
		err = fmt.Errorf("the binding says %q", out)
	}
	return err
}

// decided is a check that the binding says which cluster has how many replicas.
func (a regional) decided(want string) func(context.Context) error {
	return func(ctx context.Context) error {
		out, err := run(ctx, nil, "flotilla", "kubectl", "--kubeconfig", the.Hub.Kubeconfig, "get", "resourcebinding", "web-deployment", "-n", a.namespace,
			"-o", `jsonpath={range .spec.clusters[*]}{.name} {.replicas}, {end}`)
		if got := strings.TrimSuffix(out, ", "); err == nil && got != want {
			err = fmt.Errorf("the binding says %q, want %q", got, want)
		}
		return err
	}
}

// unlabel takes the label of the test off the clusters that the tests share.
func unlabel(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), slack*time.Minute)
	defer cancel()
	args := append([]string{"kubectl", "--kubeconfig", the.Hub.Kubeconfig, "label", "cluster"}, memberNames...)
	if _, err := run(ctx, nil, "flotilla", append(args, "serves-")...); err != nil {
		t.Error(err)
	}
}
