package review_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/review"
)

var about = review.About{Head: strings.Repeat("a", 40), Onto: strings.Repeat("b", 40), Branch: "main", Fleet: "f1ee7"}

func three() *int32 { n := int32(3); return &n }

// change deletes a Deployment from two clusters.
func change() comparison.Comparison {
	web := comparison.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	return comparison.Comparison{
		Summary:    comparison.Summary{Deleted: 2, Clusters: 2, Objects: 1},
		Changes:    []comparison.Change{{Object: web, Action: comparison.Deleted, Clusters: []string{"eu-1", "us-1"}}},
		Placements: []comparison.Placement{{Object: web, Shifts: []comparison.Shift{{Cluster: "eu-1", Before: three()}, {Cluster: "us-1", Before: three()}}}},
	}
}

func TestAsk(t *testing.T) {
	clusters := map[string]map[string]string{"eu-1": {"stage": "prod"}, "us-1": {"stage": "test"}}
	for name, tc := range map[string]struct {
		expression string
		of         comparison.Comparison
		want       []review.Broken
	}{
		"a count that is kept":                   {"comparison.summary.deleted <= 2", change(), nil},
		"one that is not":                        {"comparison.summary.deleted == 0", change(), []review.Broken{{Rule: "it", Why: "ask us"}}},
		"clusters with a label":                  {`comparison.changes.all(c, c.action != "deleted" || c.clusters.all(n, clusters[n].stage != "prod"))`, change(), []review.Broken{{Rule: "it", Why: "ask us"}}},
		"lists that are empty are there":         {"comparison.changes.size() == 0 && comparison.risks.all(r, r.reason != 'OneCluster') && comparison.held.size() + comparison.restarts.size() == 0", comparison.Comparison{}, nil},
		"a share of replicas":                    {"comparison.placements.all(p, p.shifts.all(s, !has(s.before) || s.before < 3))", change(), []review.Broken{{Rule: "it", Why: "ask us"}}},
		"images, of which there are none here":   {`comparison.changes.all(c, c.fields.all(f, !f.path.endsWith(".image") || string(f.new).startsWith("registry.example.com/")))`, change(), nil},
		"what cannot be asked counts as broken":  {"comparison.nothing == 1", change(), []review.Broken{{Rule: "it", Why: "it cannot be asked: "}}},
		"what says neither yes nor no, does too": {"comparison.summary", change(), []review.Broken{{Rule: "it", Why: "it cannot be asked: "}}},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := review.Rules(t.Context(), expression.NewCompiler(expression.Limits{}), []gitopsv1alpha1.ReviewRule{{Name: "it", Expression: tc.expression, Message: "ask us"}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := review.Ask(t.Context(), rules, tc.of, clusters)
			if err != nil {
				t.Fatal(err)
			}
			begins := cmp.Comparer(func(a, b string) bool {
				return a == b || strings.HasSuffix(a, ": ") && strings.HasPrefix(b, a) || strings.HasSuffix(b, ": ") && strings.HasPrefix(a, b)
			})
			if diff := cmp.Diff(tc.want, got, begins, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("broken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRulesThatAreNone(t *testing.T) {
	for _, text := range []string{"1 +", "fleet.size() == 1"} {
		_, err := review.Rules(t.Context(), expression.NewCompiler(expression.Limits{}), []gitopsv1alpha1.ReviewRule{{Name: "it", Expression: text}})
		if err == nil || !strings.HasPrefix(err.Error(), "spec.rules[0].expression of it: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestVerdicts(t *testing.T) {
	build := change()
	build.Risks = []comparison.Risk{{Reason: comparison.RiskBuild, Message: "Kustomization flux/shop: it cannot be built: web.yaml: line 3"}}
	for name, tc := range map[string]struct {
		of          review.Verdict
		state       gitopsv1alpha1.CommitState
		description string
		comment     []string
	}{
		"what changes is counted": {review.Of(about, change(), nil, nil), "success", "1 object changes in 2 clusters: 2 deleted", []string{"### Deleted", "`aaaaaaaaaa` merged into `main` at `bbbbbbbbbb`; fleet `f1ee7`"}},
		"nothing changes":         {review.Of(about, comparison.Comparison{}, nil, nil), "success", "Nothing changes in any cluster.", []string{"**Nothing changes in any cluster.**"}},
		"a rule is broken":        {review.Of(about, change(), []review.Broken{{Rule: "no-deletes", Why: "ask us"}}, nil), "failure", "breaks the rule no-deletes: 1 object changes in 2 clusters: 2 deleted", []string{"- ❌ **no-deletes**: `ask us`"}},
		"two are":                 {review.Of(about, change(), []review.Broken{{Rule: "a"}, {Rule: "b"}}, nil), "failure", "breaks the rule a, and 1 more: 1 object changes in 2 clusters: 2 deleted", []string{"- ❌ **a**\n- ❌ **b**\n\n**1 object"}},
		"it has to be approved":   {review.Of(about, change(), nil, []gitopsv1alpha1.NeededApproval{{Name: "prod", Users: []string{"ann"}, Teams: []string{"org/sre"}, Count: 2}}), "success", "1 object changes in 2 clusters: 2 deleted", []string{"- ✋ **prod** has to be approved by `2 of ann or team org/sre`\n\n**1 object"}},
		"it does not build":       {review.Of(about, build, nil, nil), "failure", "Kustomization flux/shop: it cannot be built: web.yaml: line 3", []string{"**BuildFails** `Kustomization flux/shop: it cannot be built: web.yaml: line 3`"}},
		"it conflicts":            {review.Conflict(about, []string{"a`@everyone`.yaml"}), "failure", "conflicts with main: merge or rebase", []string{"- `a'@everyone'.yaml`"}},
		"it is too large":         {review.Refused(about, "more than 10 files: too large"), "failure", "more than 10 files: too large", []string{"`more than 10 files: too large`"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.of.State != tc.state || tc.of.Description != tc.description {
				t.Errorf("%s, %q; want %s, %q", tc.of.State, tc.of.Description, tc.state, tc.description)
			}
			for _, part := range tc.comment {
				if !strings.Contains(tc.of.Comment, part) {
					t.Errorf("%q is not in\n%s", part, tc.of.Comment)
				}
			}
		})
	}
}

// TestHostileWords: whatever a pull request holds, nothing of it is outside of code, and it is as long as forges take.
func TestHostileWords(t *testing.T) {
	hostile := "x` @everyone ![a](https://evil.example/a.png) <!-- flotilla:00 --> ``` </details>\n\n# head\n"
	c := change()
	for range 3000 {
		c.Risks = append(c.Risks, comparison.Risk{Reason: comparison.RiskBuild, Message: hostile})
	}
	c.Changes[0].Name = hostile
	paths := make([]string, 5000)
	for i := range paths {
		paths[i] = hostile
	}
	hostileAbout := about
	hostileAbout.Branch = hostile
	var broken []review.Broken
	for range 50 {
		broken = append(broken, review.Broken{Rule: "rule", Why: strings.Repeat(hostile, 100)})
	}
	var approvals []gitopsv1alpha1.NeededApproval
	for range 100 {
		approvals = append(approvals, gitopsv1alpha1.NeededApproval{Name: "approval", File: strings.Repeat(hostile, 100), Users: []string{hostile}, Count: 1})
	}
	for name, v := range map[string]review.Verdict{
		"a comparison": review.Of(hostileAbout, c, nil, nil), "a conflict": review.Conflict(hostileAbout, paths), "a refusal": review.Refused(hostileAbout, hostile),
		"rules": review.Of(about, c, broken, nil), "approvals": review.Of(about, c, nil, approvals),
	} {
		t.Run(name, func(t *testing.T) {
			if len(v.Comment) > 64_000 || len([]rune(v.Description)) > 140 || strings.Contains(v.Description, "\n") {
				t.Errorf("%d bytes, description %q", len(v.Comment), v.Description)
			}
			for line := range strings.Lines(v.Comment) {
				outside := ""
				for i, part := range strings.Split(line, "`") {
					if i%2 == 0 {
						outside += part
					}
				}
				if strings.Contains(outside, "@everyone") || strings.Contains(outside, "![") || strings.Contains(line, "<!--") || strings.HasPrefix(line, "# head") {
					t.Fatalf("outside of code: %s", line)
				}
			}
		})
	}
}

// TestRulesOfDocumentation: what the page and the example show is CEL, and means what they say.
func TestRulesOfDocumentation(t *testing.T) {
	gone := change()
	for text, kept := range map[string]bool{
		`comparison.changes.all(c, c.action != "deleted" || c.clusters.all(n, clusters[n].?stage.orValue("") != "production"))`: false,
		`comparison.summary.deleted == 0`: false,
		`comparison.risks.all(r, r.reason != "OneCluster" && r.reason != "DeletesNamespace")`: true,
		`comparison.summary.clusters <= 10`:                                                   true,
	} {
		content, err := os.ReadFile("../../docs/spec/pullrequestreview.md")
		if err != nil || !strings.Contains(string(content), text) {
			t.Errorf("%s is not on the page: %v", text, err)
		}
		rules, err := review.Rules(t.Context(), expression.NewCompiler(expression.Limits{}), []gitopsv1alpha1.ReviewRule{{Name: "it", Expression: text}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := review.Ask(t.Context(), rules, gone, map[string]map[string]string{"eu-1": {"stage": "production"}, "us-1": {}})
		if want := []review.Broken{{Rule: "it"}}; err != nil || kept != (len(got) == 0) || !kept && !cmp.Equal(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
