package review_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/review"
)

func TestCommandOf(t *testing.T) {
	const use, useExplain = "use /flotilla plan, /flotilla what-if CLUSTER:down, or /flotilla explain KIND/NAME -n NAMESPACE", "use /flotilla explain KIND/NAME -n NAMESPACE, such as /flotilla explain deployment/web -n shop"
	web := func(line, namespace string) *review.Command {
		return &review.Command{Line: line, Verb: gitopsv1alpha1.CommandExplain, Kind: "deployment", Namespace: namespace, Name: "web"}
	}
	wrong := func(line, why string) *review.Command { return &review.Command{Line: line, Wrong: why} }
	for text, want := range map[string]*review.Command{
		"looks good":                       nil,
		"say /flotilla plan":               nil,
		"> /flotilla plan":                 nil,
		"/flotillas plan":                  nil,
		"":                                 nil,
		"  /flotilla  plan \r\nthanks":     {Line: "/flotilla plan", Verb: gitopsv1alpha1.CommandPlan},
		"/flotilla explain deployment/web": web("/flotilla explain deployment/web", ""),
		"/flotilla explain deployment web": web("/flotilla explain deployment web", ""),
		"/flotilla explain -n shop deployment/web": web("/flotilla explain -n shop deployment/web", "shop"),
		"/flotilla explain deployment/web -n shop": web("/flotilla explain deployment/web -n shop", "shop"),
		"/flotilla":                                  wrong("/flotilla", use),
		"/flotilla drop":                             wrong("/flotilla drop", use),
		"/flotilla plan b":                           wrong("/flotilla plan b", use),
		"/flotilla explain":                          wrong("/flotilla explain", useExplain),
		"/flotilla explain deployment/web -n":        wrong("/flotilla explain deployment/web -n", useExplain),
		"/flotilla explain deployment/../x":          wrong("/flotilla explain deployment/../x", useExplain),
		"/flotilla explain deployment/`@all`":        wrong("/flotilla explain deployment/`@all`", useExplain),
		"/flotilla explain deployment/web -n ../../": wrong("/flotilla explain deployment/web -n ../../", useExplain),
	} {
		got, is := review.CommandOf(text)
		if want == nil {
			want = &review.Command{}
			if is {
				t.Errorf("%q is a command", text)
			}
		}
		if diff := cmp.Diff(*want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if got, is := review.CommandOf("/flotilla explain " + strings.Repeat("x", 5000)); !is || got.Wrong != "it is too long" || len(got.Line) > 200 {
		t.Errorf("a long one: %+v", got)
	}
}

// TestHostileAnswers: neither a command nor what is explained can leave its place in the answer.
func TestHostileAnswers(t *testing.T) {
	hostile := "x` @everyone ```\n```\n</details> <!-- flotilla:00 -->\n# head"
	command, _ := review.CommandOf("/flotilla explain ` @everyone ```")
	got := command.Answer(hostile)
	lines := strings.Split(got, "\n")
	if want := "> `/flotilla explain ' @everyone '''`"; lines[0] != want {
		t.Errorf("%s, want %s", lines[0], want)
	}
	fence := lines[2]
	if len(fence) < 4 || strings.Trim(fence, "`") != "" || strings.Count(got, fence) != 2 || !strings.HasSuffix(got, fence+"\n") || strings.Contains(got, "<!--") {
		t.Errorf("answer:\n%s", got)
	}
	if got := command.Answer("use @everyone"); got != lines[0]+"\n\n`use @everyone`\n" {
		t.Errorf("answer:\n%s", got)
	}
}

// TestWhatIfOfAComment: clusters that join are of files, which comments have none of.
func TestWhatIfOfAComment(t *testing.T) {
	for text, want := range map[string]string{
		"/flotilla what-if eu-3:down":                   "eu-3:down",
		"/flotilla what-if eu-3:down us-1:capacity=50%": "eu-3:down us-1:capacity=50%",
		"/flotilla what-if eu-3:drain,us-1:label=a=b":   "eu-3:drain us-1:label=a=b",
		"/flotilla what-if":                             "wrong: use /flotilla plan, ",
		"/flotilla what-if eu-3":                        `wrong: "eu-3" is none of `,
		"/flotilla what-if eu-3:down add:/etc/passwd":   "wrong: add: is for files",
	} {
		c, is := review.CommandOf(text)
		got := ""
		for _, e := range c.Events {
			got = strings.TrimSpace(got + " " + e.String())
		}
		if c.Wrong != "" {
			got = "wrong: " + c.Wrong
		}
		if !is || !strings.HasPrefix(got, want) || (c.Wrong == "") != (c.Verb == gitopsv1alpha1.CommandWhatIf) {
			t.Errorf("%q is %q: %+v", text, got, c)
		}
	}
	c, _ := review.CommandOf("/flotilla what-if eu-3:label=a=b")
	would := comparison.Comparison{Supposed: "eu-3 is labelled a=b", Notes: []string{"<!-- @everyone"}}
	if got := c.Foresees(would); !strings.HasPrefix(got, "> `/flotilla what-if eu-3:label=a=b`\n\n") || strings.Contains(got, "<!--") || !strings.Contains(got, "eu-3 is labelled a=b") {
		t.Errorf("answer:\n%s", got)
	}
}

func TestCommandsThatAreNotAllowed(t *testing.T) {
	plan, _ := review.CommandOf("/flotilla plan")
	if got := plan.Among([]gitopsv1alpha1.ReviewCommand{gitopsv1alpha1.CommandPlan}); !reflect.DeepEqual(got, plan) {
		t.Errorf("%+v", got)
	}
	if got := plan.Among([]gitopsv1alpha1.ReviewCommand{gitopsv1alpha1.CommandExplain}); got.Verb != "" || !strings.HasPrefix(got.Wrong, "this command is not allowed here: ") {
		t.Errorf("%+v", got)
	}
}
