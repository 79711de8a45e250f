package inspection

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// sheet merges the tables of several servers. Its columns are those of the first server, further
// ones of others, and, for members, the server of each row and whether the fleet manages the
// object.
type sheet struct {
	members bool
	defs    []metav1.TableColumnDefinition
	rows    []metav1.TableRow

	fixed bool // the header is printed, so no column can be added any more
}

// newSheet returns an empty sheet. members is true if rows may be from members.
func newSheet(members bool) *sheet { return &sheet{members: members} }

// add adds the rows of a server's table.
func (s *sheet) add(server string, table *metav1.Table) {
	places := make([]int, len(table.ColumnDefinitions))
	for i, def := range table.ColumnDefinitions {
		same := func(d metav1.TableColumnDefinition) bool { return d.Name == def.Name }
		places[i] = slices.IndexFunc(s.defs, same)
		if places[i] < 0 && !s.fixed {
			places[i] = len(s.defs)
			s.defs = append(s.defs, def)
		}
	}
	for _, row := range table.Rows {
		cells := make([]any, len(s.defs))
		for i, cell := range row.Cells {
			if text, is := cell.(string); is {
				if strings.Contains(text, "://") {
					text = excerpt.WithoutCredentials(text) // a screen is seen by more people than may read the object
				}
				cell = excerpt.Visible(text) // a field of an object may be anybody's
			}
			if i < len(places) && places[i] >= 0 {
				cells[places[i]] = cell
			}
		}
		row.Cells = cells
		if s.members {
			// Two cells that have no place yet ride at the end until table knows
			// how many columns there are.
			row.Cells = append(row.Cells, server, adoption(server, row.Object.Object))
		}
		s.rows = append(s.rows, row)
	}
}

// table returns the rows that were added since the last call.
func (s *sheet) table() *metav1.Table {
	table := &metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		ColumnDefinitions: slices.Clone(s.defs),
		Rows:              s.rows,
	}
	s.rows, s.fixed = nil, true
	if !s.members {
		return table
	}
	at := 0
	if len(s.defs) > 0 && s.defs[0].Name == "Name" {
		at = 1
	}
	table.ColumnDefinitions = slices.Insert(table.ColumnDefinitions, at, metav1.TableColumnDefinition{Name: "Cluster", Type: "string"})
	table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: "Adoption", Type: "string"})
	for i := range table.Rows {
		cells := table.Rows[i].Cells
		own := len(cells) - 2
		server, adopted := cells[own], cells[own+1]
		row := make([]any, len(s.defs))
		copy(row, cells[:own])
		table.Rows[i].Cells = append(slices.Insert(row, at, server), adopted)
	}
	return table
}

// adoption returns Y if the fleet manages a member's object, N if not, and - for the control plane.
func adoption(server string, obj runtime.Object) string {
	if server == fleet.Hub {
		return "-"
	}
	if accessor, err := meta.Accessor(obj); err == nil && accessor.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] == workv1alpha2.ManagedByKarmadaLabelValue {
		return "Y"
	}
	return "N"
}

// tableOf returns the table from a server's response, or a plain one of the objects if the server
// does not return tables.
func tableOf(obj runtime.Object, now time.Time) (*metav1.Table, error) {
	content, ok := obj.(*unstructured.Unstructured)
	if !ok || content.GetKind() != "Table" || content.GroupVersionKind().Group != metav1.GroupName {
		return plainTable(obj, now)
	}
	table := &metav1.Table{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, table); err != nil {
		return nil, fmt.Errorf("read the table of the server: %w", err)
	}
	for i := range table.Rows {
		row := &table.Rows[i]
		if row.Object.Raw == nil {
			continue
		}
		decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, row.Object.Raw)
		if err != nil {
			return nil, fmt.Errorf("read a row of the server's table: %w", err)
		}
		row.Object.Object = decoded
	}
	return table, nil
}

// plainTable returns a table with the name and age of objects.
func plainTable(obj runtime.Object, now time.Time) (*metav1.Table, error) {
	objects := []runtime.Object{obj}
	if meta.IsListType(obj) {
		var err error
		if objects, err = meta.ExtractList(obj); err != nil {
			return nil, err
		}
	}
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name"}, {Name: "Age", Type: "string"},
	}}
	for _, o := range objects {
		accessor, err := meta.Accessor(o)
		if err != nil {
			return nil, err
		}
		age := "<unknown>"
		if created := accessor.GetCreationTimestamp(); !created.IsZero() {
			age = duration.HumanDuration(now.Sub(created.Time))
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{accessor.GetName(), age}, Object: runtime.RawExtension{Object: o}})
	}
	return table, nil
}
