package promotion

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// addDependencies adds the objects that the object refers to, as far as the member has them.
// It leaves out what every cluster creates by itself, and what is already in the fleet.
func (p *Promotion) addDependencies(ctx context.Context) error {
	template := p.Items[0].Template
	all, _, err := p.o.Interpreter.Dependencies(template)
	if err == nil {
		all, err = dependency.Check(all, nil, selector.ResourceOf(template), p.skip)
	}
	if err != nil {
		return fmt.Errorf("find out what %s refers to: %w", objectOf(template), err)
	}
	seen := map[Object]bool{objectOf(template): true}
	for _, need := range dependency.Needs(all) {
		found, err := p.find(ctx, need)
		if err != nil {
			return err
		}
		for i := range found {
			if of := objectOf(&found[i]); !seen[of] {
				seen[of] = true
				if err := p.addDependency(ctx, &found[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// find returns the member's objects that a dependency selects.
func (p *Promotion) find(ctx context.Context, need dependency.Need) ([]unstructured.Unstructured, error) {
	if need.Name != "" {
		of := Object{need.GroupVersionKind, need.Namespace, need.Name}
		live, err := p.read(ctx, of)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			p.note("%s is not there: nothing goes along", of.in(p.o.Cluster))
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", of.in(p.o.Cluster), err)
		}
		return []unstructured.Unstructured{*live}, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(need.GroupVersion().WithKind(need.Kind + "List"))
	err := p.o.Member.List(ctx, list, client.InNamespace(need.Namespace), client.MatchingLabelsSelector{Selector: need.Labels}, client.Limit(maxSelected+1))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err == nil && len(list.Items) > maxSelected {
		err = fmt.Errorf("there are more than %d", maxSelected)
	}
	if err != nil {
		return nil, fmt.Errorf("list what is needed of kind %s in cluster %s: %w", need.Kind, p.o.Cluster, err)
	}
	return list.Items, nil
}

// maxSelected is how many objects one dependency with a selector may have.
const maxSelected = 500

// addDependency adds one object on which the promoted one depends.
func (p *Promotion) addDependency(ctx context.Context, live *unstructured.Unstructured) error {
	of := objectOf(live)
	switch {
	case of.Namespace == "" && p.Items[0].live.GetNamespace() != "":
		p.note("%s is cluster-scoped and stays the cluster's own: promote it by itself", of.in(p.o.Cluster))
		return nil
	case of.Kind == "ServiceAccount" && of.Name == "default", of.Kind == "ConfigMap" && of.Name == "kube-root-ca.crt":
		return nil
	case isToken(live), metav1.GetControllerOf(live) != nil:
		p.note("%s is made by the cluster itself and stays its own", of.in(p.o.Cluster))
		return nil
	case managed(live):
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(live.GroupVersionKind())
		err := p.o.Hub.Get(ctx, client.ObjectKeyFromObject(live), stored)
		if apierrors.IsNotFound(err) {
			return refuse(live, p.skip, p.o.Cluster)
		}
		if err != nil {
			return err
		}
		carried, err := p.earlier.item(ctx, live, p.o)
		if carried != nil {
			p.Items = append(p.Items, *carried)
		}
		return err // if nil, an earlier promotion has it in the fleet
	}
	item, err := p.item(ctx, live)
	if err != nil {
		return fmt.Errorf("%w; without --dependencies it stays the cluster's own", err)
	}
	if ref, claimed := propagation.Claimed(item.Template); claimed && item.There && !p.earlier.carries(item.Template, p.o) {
		p.note("%s is in the fleet already, carried by the policy %s", of, ref)
		return nil
	}
	p.Items = append(p.Items, item)
	return nil
}

func (p *Promotion) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}
