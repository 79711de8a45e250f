package inspection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCellsObeyNobody: what a tenant writes into a field that is shown does nothing to the terminal of who looks.
func TestCellsObeyNobody(t *testing.T) {
	s := newSheet(false)
	s.add("", &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "URL"}, {Name: "Age"}},
		Rows:              []metav1.TableRow{{Cells: []any{"evil", "https://a.test/\x07\x1b[2J\u202egpj", int64(3)}}},
	})
	want := []any{"evil", `https://a.test/\u0007\u001b[2J\u202egpj`, int64(3)}
	if diff := cmp.Diff(want, s.table().Rows[0].Cells); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCellsKeepPasswords: an address in a table has neither user nor password, as in flotilla status.
func TestCellsKeepPasswords(t *testing.T) {
	s := newSheet(false)
	s.add("", &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "URL"}, {Name: "Status"}},
		Rows: []metav1.TableRow{
			{Cells: []any{"fleet", "https://bob:hunter2@git.test/fleet.git", "password: none"}},
			{Cells: []any{"apps", "ssh://git@git.test/apps.git", "True"}},
		},
	})
	var got [][]any
	for _, row := range s.table().Rows {
		got = append(got, row.Cells)
	}
	want := [][]any{{"fleet", "https://git.test/fleet.git", "password: none"}, {"apps", "ssh://git.test/apps.git", "True"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
