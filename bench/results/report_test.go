package results

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	r := &Report{Dir: t.TempDir()}
	r.AtMost("1", "writes", 7, "writes", 6)
	r.AtLeast("7", "decisions", 1200.1234, "decisions/s", 1000)
	r.AtLeast("7", "stored", 299.9, "decisions/s", 300)
	r.Note("8", "until stored", 4.5, "ms")
	var table strings.Builder
	r.Print(&table)
	const want = `ROW  WHAT          VALUE                 GOAL                MET
1    writes        7 writes              ≤ 6 writes          NO
7    decisions     1200.123 decisions/s  ≥ 1000 decisions/s  yes
7    stored        299.9 decisions/s     ≥ 300 decisions/s   NO
8    until stored  4.5 ms                                    
`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	path := filepath.Join(r.Dir, "summary.json")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines []map[string]any
	if err := json.Unmarshal(content, &lines); err != nil {
		t.Fatal(err)
	}
	wantLines := []map[string]any{
		{"row": "1", "name": "writes", "value": 7.0, "unit": "writes", "goal": 6.0, "met": false},
		{"row": "7", "name": "decisions", "value": 1200.123, "unit": "decisions/s", "goal": 1000.0, "met": true},
		{"row": "7", "name": "stored", "value": 299.9, "unit": "decisions/s", "goal": 300.0, "met": false},
		{"row": "8", "name": "until stored", "value": 4.5, "unit": "ms", "goal": nil, "met": true},
	}
	if diff := cmp.Diff(wantLines, lines); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestPercentile(t *testing.T) {
	samples := []float64{5, 1, 4, 2, 3}
	got := map[float64]float64{}
	for _, share := range []float64{0, 0.5, 0.9, 1} {
		got[share] = Percentile(samples, share)
	}
	if diff := cmp.Diff(map[float64]float64{0: 1, 0.5: 3, 0.9: 5, 1: 5}, got); diff != "" {
		t.Errorf("percentiles (-want +got):\n%s", diff)
	}
}
