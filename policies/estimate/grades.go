package estimate

import (
	"cmp"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// CountNodes counts nodes by the models of their cluster, given what each of
// them has free. A node is of the largest grade that it has enough for, in the
// resource that it is shortest of; one that is overcommitted is of the smallest.
// A node that takes no pod any more is not counted. Every grade is listed, the
// smallest first; without models there is none.
func CountNodes(models []clusterv1alpha1.ResourceModel, free iter.Seq[corev1.ResourceList]) []clusterv1alpha1.AllocatableModeling {
	if len(models) == 0 {
		return nil
	}
	grades := gradesOf(models)
	out := make([]clusterv1alpha1.AllocatableModeling, len(grades))
	for i := range grades {
		out[i].Grade = grades[i].number
	}
	for node := range free {
		if pods := node[corev1.ResourcePods]; Amount(corev1.ResourcePods, &pods) > 0 {
			out[largest(grades, node)].Count++
		}
	}
	return out
}

// grade is a size of nodes by what they have free at least.
type grade struct {
	number uint
	least  amounts
}

// gradesOf returns the sizes, the smallest first.
func gradesOf(models []clusterv1alpha1.ResourceModel) []grade {
	out := make([]grade, 0, len(models))
	for i := range models {
		g := grade{number: models[i].Grade}
		for j := range models[i].Ranges {
			r := &models[i].Ranges[j]
			*g.least.at(r.Name) = Amount(r.Name, &r.Min)
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b grade) int { return cmp.Compare(a.number, b.number) })
	return out
}

// largest returns the position of the largest grade that free is enough for,
// and that all smaller ones are, too.
func largest(grades []grade, free corev1.ResourceList) int {
	for i := range grades {
		if !grades[i].fits(free) {
			return max(i-1, 0)
		}
	}
	return len(grades) - 1
}

func (g *grade) fits(free corev1.ResourceList) bool {
	for _, least := range g.least {
		if q := free[least.name]; Amount(least.name, &q) < least.n {
			return false
		}
	}
	return true
}
