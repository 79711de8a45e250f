package whatif_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/whatif"
)

// TestParse reads the words of events, as people write them.
func TestParse(t *testing.T) {
	cases := map[string]struct {
		words []string
		want  string // what is said of them
		err   string // the beginning of the error
	}{
		"nothing":                             {},
		"a cluster does not answer":           {[]string{"eu-3:down"}, "eu-3 is down", ""},
		"several in one word":                 {[]string{"eu-3:down,us-1:drain"}, "eu-3 is down and us-1 is drained", ""},
		"several words":                       {[]string{"eu-3:cordon", "us-1:remove,us-2:down"}, "eu-3 is cordoned, us-1 is removed and us-2 is down", ""},
		"a label":                             {[]string{"eu-3:label=tier=gold"}, "eu-3 has the label tier=gold", ""},
		"a label without a value":             {[]string{"eu-3:label=tier="}, "eu-3 has the label tier=", ""},
		"a label that goes":                   {[]string{"eu-3:label=tier-"}, "eu-3 loses the label tier", ""},
		"a taint":                             {[]string{"eu-3:taint=edge=far:NoExecute"}, "eu-3 has the taint edge=far:NoExecute", ""},
		"a taint without a value":             {[]string{"eu-3:taint=edge:NoSchedule,eu-4:down"}, "eu-3 has the taint edge:NoSchedule and eu-4 is down", ""},
		"half of the capacity":                {[]string{"eu-3:capacity=50%"}, "eu-3 has 50% of its capacity", ""},
		"amounts, and what follows on them":   {[]string{"eu-3:capacity=cpu=100,memory=200Gi,us-1:down"}, "eu-3 has the capacity cpu=100,memory=200Gi and us-1 is down", ""},
		"a verb that there is not":            {[]string{"eu-3:explode"}, "", `"eu-3:explode" is none of CLUSTER:down, `},
		"no verb":                             {[]string{"eu-3"}, "", `"eu-3" is none of `},
		"no cluster":                          {[]string{":down"}, "", `":down" is none of `},
		"no file":                             {[]string{"add:"}, "", `"add:" is none of `},
		"an empty word":                       {[]string{""}, "", `"" is none of `},
		"a comma too many":                    {[]string{"eu-3:down,"}, "", `"" is none of `},
		"a value where there is none":         {[]string{"eu-3:down=now"}, "", `"eu-3:down=now" is none of `},
		"a label without anything":            {[]string{"eu-3:label=tier"}, "", `"eu-3:label=tier" is none of `},
		"a label that is none":                {[]string{"eu-3:label=a b=c"}, "", `"eu-3:label=a b=c" has the key "a b", which is none: `},
		"a value of a label that is none":     {[]string{"eu-3:label=a=b c"}, "", `"eu-3:label=a=b c" has the value "b c", which is none: `},
		"a taint without an effect":           {[]string{"eu-3:taint=a=b"}, "", `"eu-3:taint=a=b" is none of `},
		"a taint with an effect of no use":    {[]string{"eu-3:taint=a=b:Sometimes"}, "", `"eu-3:taint=a=b:Sometimes" has the effect "Sometimes": it is NoSchedule or NoExecute`},
		"a share that is none":                {[]string{"eu-3:capacity=half%"}, "", `"eu-3:capacity=half%" has the share "half%": `},
		"less than nothing":                   {[]string{"eu-3:capacity=-5%"}, "", `"eu-3:capacity=-5%" has the share "-5%": `},
		"a share that is not a number":        {[]string{"eu-3:capacity=NaN%"}, "", `"eu-3:capacity=NaN%" has the share "NaN%": `},
		"an amount that is none":              {[]string{"eu-3:capacity=cpu=many"}, "", `"eu-3:capacity=cpu=many" has the amount "cpu=many": `},
		"an amount that is less than nothing": {[]string{"eu-3:capacity=cpu=-1"}, "", `"eu-3:capacity=cpu=-1" has the amount "cpu=-1": `},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			events, err := whatif.Parse(tc.words)
			if tc.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.err) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("error %q, want one line that begins with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, whatif.Says(events)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var words []string
			for _, e := range events {
				words = append(words, e.String())
			}
			if diff := cmp.Diff(strings.Join(tc.words, ","), strings.Join(words, ",")); diff != "" {
				t.Errorf("as they were written (-want +got):\n%s", diff)
			}
		})
	}
}
