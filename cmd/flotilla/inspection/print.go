package inspection

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// kindRows are the rows of one kind from all servers.
type kindRows struct {
	mapping *meta.RESTMapping
	sheet   *sheet
}

// printTables prints a table per kind, with the rows of all servers.
func (g *getter) printTables(answers []fleet.Answer[found]) error {
	kinds, err := g.sheets(answers)
	if err != nil {
		return err
	}
	namespaced, absent := true, false
	for _, a := range answers {
		absent = absent || a.Err != nil || len(a.Value.absent) > 0
	}
	w := printers.GetNewTabWriter(g.Out)
	printed := false
	for _, kind := range kinds {
		table := kind.sheet.table()
		inNamespace := kind.mapping == nil || kind.mapping.Scope.Name() == meta.RESTScopeNameNamespace
		namespaced = namespaced && inNamespace
		if len(table.Rows) == 0 {
			continue
		}
		if printed && !g.NoHeaders {
			_ = w.Flush()
			_, _ = fmt.Fprintln(g.Out)
		}
		w.SetRememberedWidths(nil)
		printer, err := g.ToPrinter(kind.mapping, nil, g.AllNamespaces && inNamespace, len(kinds) > 1)
		if err != nil {
			return err
		}
		if err := printer.PrintObj(table, w); err != nil {
			return err
		}
		_ = w.Flush()
		printed = true
	}
	if !printed && !absent && !g.IgnoreNotFound {
		g.nothing(len(answers), namespaced)
	}
	return nil
}

// sheets merges the answers by kind, in the order in which the kinds first occur.
func (g *getter) sheets(answers []fleet.Answer[found]) ([]*kindRows, error) {
	var kinds []*kindRows
	known := map[schema.GroupResource]*kindRows{}
	now := time.Now()
	for _, a := range answers {
		for _, info := range a.Value.infos {
			table, err := tableOf(info.Object, now)
			if err != nil {
				return nil, err
			}
			var resource schema.GroupResource
			if info.Mapping != nil {
				resource = info.Mapping.Resource.GroupResource()
			}
			if known[resource] == nil {
				known[resource] = &kindRows{mapping: info.Mapping, sheet: newSheet(true)}
				kinds = append(kinds, known[resource])
			}
			known[resource].sheet.add(a.Cluster, table)
		}
	}
	return kinds, nil
}

// printObjects prints whole objects: a single one from one server, or else a list. An annotation
// on each names the member that it is from.
func (g *getter) printObjects(answers []fleet.Answer[found]) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	failed, named := 0, map[string]bool{}
	onlyNames := g.PrintFlags.OutputFormat != nil && *g.PrintFlags.OutputFormat == "name"
	for _, a := range answers {
		if a.Err != nil || len(a.Value.absent) > 0 {
			failed++
		}
		for _, info := range a.Value.infos {
			if named[nameOf(info)] {
				continue
			}
			if onlyNames { // print a name only once
				named[nameOf(info)] = true
			}
			if err := appendFrom(list, a.Cluster, info.Object); err != nil {
				return err
			}
		}
	}
	if len(list.Items) == 0 && (failed == len(answers) || g.IgnoreNotFound) {
		return nil // there are only errors to print
	}
	printer, err := g.ToPrinter(nil, nil, false, false)
	if err != nil {
		return err
	}
	if len(answers) == 1 && answers[0].Value.single && len(list.Items) == 1 {
		return printer.PrintObj(&list.Items[0], g.Out)
	}
	return printer.PrintObj(list, g.Out)
}

// nameOf returns a key of an object's kind, namespace and name.
func nameOf(info *resource.Info) string {
	kind := ""
	if info.Object != nil {
		kind = info.Object.GetObjectKind().GroupVersionKind().GroupKind().String()
	}
	return kind + "/" + info.Namespace + "/" + info.Name
}

// appendFrom appends an object, or the items of a list, from a server.
func appendFrom(list *unstructured.UnstructuredList, server string, obj runtime.Object) error {
	items := []runtime.Object{obj}
	if meta.IsListType(obj) {
		var err error
		if items, err = meta.ExtractList(obj); err != nil {
			return err
		}
	}
	for _, item := range items {
		content, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("%s answers with a %T", server, item)
		}
		if server != fleet.Hub {
			annotations := content.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[clusterv1alpha1.CacheSourceAnnotationKey] = server
			content.SetAnnotations(annotations)
		}
		list.Items = append(list.Items, *content)
	}
	return nil
}
