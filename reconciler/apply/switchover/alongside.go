package switchover

import (
	"cmp"
	"context"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Alongside are the Kustomizations that go along with one, with policies and overrides that may mean the same as its own.
type Alongside struct {
	// Going are being deleted, sorted by name.
	Going []*kustomizev1.Kustomization
	// Soon are about to be deleted.
	Soon []client.ObjectKey
}

// Alongside returns the Kustomizations whose policies and overrides have to go at the same time as those that are about to go: what both
// mean would else be carried with the ones, and without the others, which no commit has. There are none of more than mostRelated, and none
// half a minute after the Kustomization was deleted.
func (r Retirements) Alongside(ctx context.Context, q Retired) (Alongside, error) {
	var out Alongside
	by := rulesOf(q.Rules)
	if len(by.rules) == 0 || r.groups.clock.Since(q.Of.DeletionTimestamp.Time) >= longest {
		return out, nil
	}
	all, err := r.groups.all(ctx)
	if err != nil {
		return out, err
	}
	for i := range all {
		ks := &all[i]
		if client.ObjectKeyFromObject(ks) == client.ObjectKeyFromObject(q.Of) || !r.groups.forecast.isSibling(ks, q.Of, q.At) {
			continue
		}
		means, err := r.groups.mean(ctx, ks, nil, by)
		if err != nil {
			return Alongside{}, err
		}
		if !means {
			continue
		}
		if ks.DeletionTimestamp != nil {
			if decide(ks, q.At) == willWrite {
				out.Going = append(out.Going, ks)
			}
			continue
		}
		leaves, err := r.groups.forecast.drops(ctx, ks, q.Of.Namespace, q.At)
		if err != nil {
			return Alongside{}, err
		}
		if leaves {
			out.Soon = append(out.Soon, client.ObjectKeyFromObject(ks))
		}
	}
	if len(out.Going)+len(out.Soon) > mostRelated {
		return Alongside{}, nil
	}
	slices.SortFunc(out.Going, func(a, b *kustomizev1.Kustomization) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// rulesOf returns what policies and overrides mean.
func rulesOf(objects []*unstructured.Unstructured) (out changed) {
	for _, obj := range objects {
		if is, ok := ruleOf(obj); ok {
			out.rules = append(out.rules, is)
		}
	}
	return out
}
