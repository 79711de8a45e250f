package policies_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// clusters: one per line, "east region=eu zone=a pods=100 cpu=8 nodes=2x3
// taint=k=v:NoSchedule without=Deployment tier=gold"; what is no field is a label.
func (w *world) doClusters(_ []string, body string) error {
	for line := range strings.Lines(body) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		c := &clusterv1alpha1.Cluster{}
		c.Name = fields[0]
		c.Labels = map[string]string{}
		c.Spec.SyncMode = clusterv1alpha1.Push
		c.Status.APIEnablements = everyAPI()
		for _, f := range fields[1:] {
			k, v, _ := strings.Cut(f, "=")
			setCluster(c, k, v)
		}
		w.clusters[c.Name] = c
	}
	return nil
}

func everyAPI() []clusterv1alpha1.APIEnablement {
	kinds := map[string][]string{
		"apps/v1": {"Deployment", "StatefulSet", "DaemonSet"}, "batch/v1": {"Job", "CronJob"},
		"v1": {"ConfigMap", "Service", "Secret", "Pod"}, "networking.k8s.io/v1": {"Ingress"},
		"rbac.authorization.k8s.io/v1": {"ClusterRole"}, "apiextensions.k8s.io/v1": {"CustomResourceDefinition"}, "example.com/v1": {"Tenant"},
	}
	var out []clusterv1alpha1.APIEnablement
	for _, gv := range slices.Sorted(maps.Keys(kinds)) {
		e := clusterv1alpha1.APIEnablement{GroupVersion: gv}
		for _, k := range kinds[gv] {
			e.Resources = append(e.Resources, clusterv1alpha1.APIResource{Kind: k})
		}
		out = append(out, e)
	}
	return out
}

func setCluster(c *clusterv1alpha1.Cluster, k, v string) {
	switch k {
	case "region":
		c.Spec.Region = v
	case "provider":
		c.Spec.Provider = v
	case "zone":
		c.Spec.Zones = append(c.Spec.Zones, v)
	case "taint":
		c.Spec.Taints = append(c.Spec.Taints, taintOf(v))
	case "without":
		for i := range c.Status.APIEnablements {
			e := &c.Status.APIEnablements[i]
			e.Resources = slices.DeleteFunc(e.Resources, func(r clusterv1alpha1.APIResource) bool { return r.Kind == v })
		}
	case "pods", "cpu":
		summary(c).Allocatable[corev1.ResourceName(k)] = resource.MustParse(v)
	case "nodes":
		setNodes(c, v)
	default:
		c.Labels[k] = v
	}
}

func summary(c *clusterv1alpha1.Cluster) *clusterv1alpha1.ResourceSummary {
	if c.Status.ResourceSummary == nil {
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1000")}}
	}
	return c.Status.ResourceSummary
}

// setNodes counts nodes by size: "2x3" are three with two cores free each.
func setNodes(c *clusterv1alpha1.Cluster, v string) {
	cores, n, _ := strings.Cut(v, "x")
	grade := uint(len(c.Spec.ResourceModels))
	c.Spec.ResourceModels = append(c.Spec.ResourceModels, clusterv1alpha1.ResourceModel{
		Grade: grade, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: corev1.ResourceCPU, Min: resource.MustParse(cores)}},
	})
	s := summary(c)
	s.AllocatableModelings = append(s.AllocatableModelings, clusterv1alpha1.AllocatableModeling{Grade: grade, Count: int(atoi(n))})
}

func taintOf(s string) corev1.Taint {
	pair, effect, _ := strings.Cut(s, ":")
	k, v, _ := strings.Cut(pair, "=")
	return corev1.Taint{Key: k, Value: v, Effect: corev1.TaintEffect(effect)}
}

func (w *world) lose(args []string, _ string) error {
	delete(w.clusters, args[0])
	return nil
}

func (w *world) leave(args []string, _ string) error {
	return w.edit(args[0], func(c *clusterv1alpha1.Cluster) {
		at := metav1.NewTime(w.now)
		c.DeletionTimestamp = &at
	})
}

func (w *world) label(args []string, _ string) error {
	return w.edit(args[0], func(c *clusterv1alpha1.Cluster) {
		for _, a := range args[1:] {
			if k, gone := strings.CutSuffix(a, "-"); gone {
				delete(c.Labels, k)
				continue
			}
			k, v, _ := strings.Cut(a, "=")
			setCluster(c, k, v)
		}
	})
}

func (w *world) taint(args []string, _ string) error {
	return w.edit(args[0], func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = append(c.Spec.Taints, taintOf(args[1])) })
}

func (w *world) edit(name string, change func(*clusterv1alpha1.Cluster)) error {
	c := w.clusters[name]
	if c == nil {
		return fmt.Errorf("no cluster %s", name)
	}
	c = c.DeepCopy()
	change(c)
	w.clusters[name] = c
	return nil
}
