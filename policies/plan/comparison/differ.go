package comparison

import (
	"bytes"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/explain/change"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// differ compares the objects of one template in all clusters.
type differ struct {
	*comparer
	id     identity
	object Object
	// seen are the differences of contents that were compared already: in most clusters they are the same.
	seen map[string]*difference
}

// difference is how a manifest changes.
type difference struct {
	before, after *unstructured.Unstructured
	fields        []change.Change
	action        Action
	// none means that they differ only in what the fleet adds.
	none bool
	pods pods
	// key is equal for equal differences.
	key string
}

// add adds a change of one cluster to the group of those that are equal.
func (d *differ) add(cluster string, action Action, was, is *content) {
	diff := d.difference(action, was, is)
	if diff.none {
		return
	}
	suspended := is != nil && is.suspended
	key := string(diff.action) + "\x00" + d.id.String() + "\x00" + diff.key
	if suspended {
		key += "\x00suspended"
	}
	group := d.groups[key]
	if group == nil {
		group = &Change{Object: d.object, Action: diff.action, Fields: diff.fields, Suspended: suspended, Unknown: diff.action == Updated && diff.before == nil}
		group.Before, group.After = fieldsOf(diff.before), fieldsOf(diff.after)
		d.groups[key] = group
	}
	group.Clusters = append(group.Clusters, cluster)
	d.restart(cluster, &diff.pods)
}

func fieldsOf(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	return obj.Object
}

// difference returns how the manifest changes, compared once for contents that are equal but for the cluster's own marks.
func (d *differ) difference(action Action, was, is *content) *difference {
	key := string(action) + "\x00" + was.plain() + "\x00" + is.plain()
	if known := d.seen[key]; known != nil {
		return known
	}
	out := &difference{action: action}
	d.seen[key] = out
	before, after := d.read(was), d.read(is)
	if action == Updated && before != nil && after != nil {
		if out.none = equality.Semantic.DeepEqual(before.Object, after.Object); out.none {
			return out
		}
		out.pods = podsOf(before, after, d.Head.Fleet.Interpreter)
	}
	hide := hides(before) || hides(after)
	out.before, out.after = d.conceal(before, hide), d.conceal(after, hide)
	switch {
	case action == Updated && before != nil && after != nil:
		out.fields = change.All(out.before.Object, out.after.Object)
		if onlyOwner(out.fields) {
			out.action = Moved
		}
		out.key = encoded(out.fields)
	case action == Created:
		out.key = encoded(out.after.Object)
	}
	return out
}

// plain returns the manifest without the marks that are another in each cluster; empty for none.
func (c *content) plain() string {
	if c == nil || c.raw == nil {
		return ""
	}
	raw := bytes.ReplaceAll(c.raw, []byte(c.work), nil)
	return string(bytes.ReplaceAll(raw, []byte(`"`+c.space+`"`), nil))
}

// read returns a manifest as its author knows it, with what a server fills in; nil where it is not known.
func (d *differ) read(c *content) *unstructured.Unstructured {
	if c == nil || c.raw == nil {
		return nil
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(c.raw); err != nil {
		return nil // the plan has encoded it
	}
	obj = plan.Carried(obj)
	if d.Default != nil {
		d.Default(obj)
	}
	return obj
}

// onlyOwner reports whether all changes are about who owns an object.
func onlyOwner(fields []change.Change) bool {
	labels, annotations := propagation.ClaimKeys()
	var paths []string
	for _, key := range append([]string{ownerName, ownerNamespace}, labels...) {
		paths = append(paths, "/metadata/labels/"+change.Escape(key))
	}
	for _, key := range annotations {
		paths = append(paths, "/metadata/annotations/"+change.Escape(key))
	}
	return len(fields) > 0 && !slices.ContainsFunc(fields, func(f change.Change) bool { return !slices.Contains(paths, f.Path) })
}

// encoded returns a value as text, equal for equal values.
func encoded(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error() // values came from JSON
	}
	return string(data)
}
