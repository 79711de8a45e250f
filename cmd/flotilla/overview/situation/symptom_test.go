package situation_test

import (
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// TestSymptom: the cause that Pods show follows the problem, and is shortened to fit the screen.
func TestSymptom(t *testing.T) {
	f := situation.Fleet{Problems: []situation.Problem{
		{Kind: "Deployment", Namespace: "shop", Name: "web", Clusters: []string{"east"}, Message: "not ready 0/2", Symptom: "ErrImagePull: no such\nimage (2 of 2 Pods)", Next: "a"},
		{Kind: "Deployment", Namespace: "shop", Name: "api", Message: "not ready 0/1", Symptom: strings.Repeat("x", 200), Next: "b"},
		{Kind: "Deployment", Namespace: "shop", Name: "db", Message: "not ready 0/1", Next: "c"},
	}}
	var out strings.Builder
	if err := f.Text(&out, situation.TextOptions{Width: 300}); err != nil {
		t.Fatal(err)
	}
	want := `
NOT READY
   1  Deployment shop/web in east: not ready 0/2: ErrImagePull: no such image (2 of 2 Pods)
      next: a
   2  Deployment shop/api: not ready 0/1: ` + strings.Repeat("x", 145) + `…
      next: b
   3  Deployment shop/db: not ready 0/1
      next: c
`
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
}
