package waiting

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// start is on the grain.
var start = time.Unix(1_000_000, 0)

// at is so many seconds after the start.
func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func ref(apiVersion, kind, namespace, name string) workv1alpha2.ObjectReference {
	return workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

func web(namespace string) workv1alpha2.ObjectReference {
	return ref("apps/v1", "Deployment", namespace, "web")
}

// by is the pods of a controller that wait since so many seconds after the start.
func by(owner nodes.Owner, namespace string, since ...float64) []*nodes.Pod {
	var out []*nodes.Pod
	for i, seconds := range since {
		out = append(out, &nodes.Pod{Namespace: namespace, Name: fmt.Sprint(owner.Kind, owner.Name, i), Owner: owner, Created: at(seconds), Waits: at(seconds)})
	}
	return out
}

func set(name, template string) nodes.Owner {
	return nodes.Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-" + template, Template: template}
}

func listOf(pods []*nodes.Pod, workloads ...workv1alpha2.ObjectReference) *List {
	x := &nodes.Index{}
	for _, p := range pods {
		x.Pod(nil, p)
	}
	return Of(nodes.WaitingIn(x), slices.Values(workloads))
}

func TestWhatIsReported(t *testing.T) {
	db := nodes.Owner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}
	cases := map[string]struct {
		pods []*nodes.Pod
		of   []workv1alpha2.ObjectReference
		want string
	}{
		"nothing waits": {nil, []workv1alpha2.ObjectReference{web("shop")}, `{"version":1}`},
		"what waits is of nobody who is told of": {by(set("web", "h1"), "shop", 1), []workv1alpha2.ObjectReference{web("depot"), ref("apps/v1", "Deployment", "shop", "we"), ref("apps/v1", "DaemonSet", "shop", "web-h1")},
			`{"version":1}`},
		"by its ReplicaSet, rounded up": {by(set("web", "h1"), "shop", 0, 0.5, 10, 11), []workv1alpha2.ObjectReference{web("shop")},
			`{"version":1,"workloads":[{"group":"apps","kind":"Deployment","namespace":"shop","name":"web","rows":[[1000000,1],[1000010,2],[1000020,1]]}]}`},
		"of several ReplicaSets that of the latest pod": {slices.Concat(by(set("web", "h1"), "shop", 0, 0), by(set("web", "h2"), "shop", 60)), []workv1alpha2.ObjectReference{web("shop")},
			`{"version":1,"workloads":[{"group":"apps","kind":"Deployment","namespace":"shop","name":"web","rows":[[1000060,1]]}]}`},
		"of any kind that makes ReplicaSets": {by(set("web", "h1"), "shop", 0), []workv1alpha2.ObjectReference{ref("argoproj.io/v1alpha1", "Rollout", "shop", "web")},
			`{"version":1,"workloads":[{"group":"argoproj.io","kind":"Rollout","namespace":"shop","name":"web","rows":[[1000000,1]]}]}`},
		"the longest first, each once": {slices.Concat(by(db, "shop", 30), by(set("web", "h1"), "shop", 0), by(db, "depot", 0)),
			[]workv1alpha2.ObjectReference{ref("apps/v1", "StatefulSet", "shop", "db"), web("shop"), web("shop"), ref("apps/v1beta1", "Deployment", "shop", "web"), ref("apps/v1", "StatefulSet", "depot", "db")},
			`{"version":1,"workloads":[` +
				`{"group":"apps","kind":"StatefulSet","namespace":"depot","name":"db","rows":[[1000000,1]]},` +
				`{"group":"apps","kind":"Deployment","namespace":"shop","name":"web","rows":[[1000000,1]]},` +
				`{"group":"apps","kind":"StatefulSet","namespace":"shop","name":"db","rows":[[1000030,1]]}]}`},
		"many times are joined, to the latest": {by(db, "shop", 0, 10, 20, 30, 40, 50, 60, 70, 80), []workv1alpha2.ObjectReference{ref("apps/v1", "StatefulSet", "shop", "db")},
			`{"version":1,"workloads":[{"group":"apps","kind":"StatefulSet","namespace":"shop","name":"db","rows":[[1000010,2],[1000030,2],[1000050,2],[1000070,2],[1000080,1]]}]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := listOf(tc.pods, tc.of...)
			if diff := cmp.Diff(tc.want, string(is.Encode())); diff != "" {
				t.Errorf("it tells (-want +got):\n%s", diff)
			}
			if again, err := Decode(is.Encode()); err != nil || !cmp.Equal(again, is) {
				t.Errorf("it is read as %+v: %v", again, err)
			}
		})
	}
}

// TestTooMuchIsCut has a thousand workloads wait, and fewer with names that are as long as can be.
func TestTooMuchIsCut(t *testing.T) {
	for name, tc := range map[string]struct{ workloads, long, rows, reported int }{
		"there is room for all":      {100, 0, 4, 100},
		"more than are told of ever": {1000, 0, 1, 0},
		"the longest names":          {100, 200, 9, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []*nodes.Pod
			var of []workv1alpha2.ObjectReference
			for i := range tc.workloads {
				is := fmt.Sprintf("w%04d%s", i, strings.Repeat("x", tc.long))
				for r := range tc.rows {
					pods = append(pods, by(nodes.Owner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: is}, strings.Repeat("n", 1+tc.long/4), float64(10*i+100_000*r))...)
					pods[len(pods)-1].Name += fmt.Sprint(r)
				}
				of = append(of, ref("apps/v1", "StatefulSet", strings.Repeat("n", 1+tc.long/4), is))
			}
			is := listOf(pods, of...)
			text := is.Encode()
			if _, err := Decode(text); err != nil {
				t.Error(err)
			}
			reported, leftOut := len(is.Workloads), int(is.LeftOut)
			if reported+leftOut != tc.workloads || tc.reported != 0 && reported != tc.reported || tc.reported == 0 && len(text) < MostBytes/2 {
				t.Errorf("%d are told and %d not, of %d, in %d bytes", reported, leftOut, tc.workloads, len(text))
			}
			if first := is.Workloads[0]; first.Name != of[0].Name || leftOut > 0 && len(first.Rows) != 1 {
				t.Errorf("the first is %s, in %d rows", first.Name, len(first.Rows))
			}
			known := Read(is, nil, at(0))
			if n, err := known.Unschedulable(of[0], 0, at(1e6)); err != nil || n != int32(tc.rows) {
				t.Errorf("of the first %d wait, of %d: %v", n, tc.rows, err)
			}
			if n, err := known.Unschedulable(web("shop"), 0, at(1e6)); n != 0 || leftOut > 0 != errors.Is(err, ErrUnreported) {
				t.Errorf("of one that is not told %d wait: %v", n, err)
			}
		})
	}
}

func TestTimesCount(t *testing.T) {
	type read struct{ read, asked float64 } // seconds after the start
	cases := map[string]struct {
		reported [][]int64 // since the start
		looks    []read
		want     []int32
	}{
		"as they are told":                {[][]int64{{0, 3}, {60, 2}}, []read{{65, 299}, {65, 300}, {65, 359}, {65, 360}}, []int32{0, 3, 3, 5}},
		"just rounded up":                 {[][]int64{{10, 1}}, []read{{2, 309}, {2, 310}}, []int32{0, 1}},
		"ahead, from when they were read": {[][]int64{{3600, 1}}, []read{{20, 319}, {20, 320}}, []int32{0, 1}},
		"ahead, and read again":           {[][]int64{{3600, 1}}, []read{{20, 100}, {200, 319}, {200, 320}}, []int32{0, 0, 1}},
		"after years":                     {[][]int64{{0, 1}}, []read{{20, 1e9}}, []int32{1}},
		"at the end of time":              {[][]int64{{latest - start.Unix(), 1}}, []read{{20, 319}, {20, 320}}, []int32{0, 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := Workload{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
			for _, r := range tc.reported {
				w.Rows = append(w.Rows, []int64{start.Unix() + r[0], r[1]})
			}
			var known *Known
			var got []int32
			for _, l := range tc.looks {
				known = Read(&List{Version: Version, Workloads: []Workload{w}}, known, at(l.read))
				n, err := known.Unschedulable(web("shop"), 5*time.Minute, at(l.asked))
				if err != nil {
					t.Error(err)
				}
				got = append(got, n)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("so many wait (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNeverMoreThanThereIs has pods come, wait and go at random, and looks now and then.
func TestNeverMoreThanThereIs(t *testing.T) {
	counted, same := 0, 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 5))
		x, pods := &nodes.Index{}, map[int]*nodes.Pod{}
		workloads := []workv1alpha2.ObjectReference{web("shop"), web("depot"), ref("apps/v1", "StatefulSet", "shop", "db")}
		owners := []nodes.Owner{set("web", "h1"), set("web", "h2"), {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}}
		var known *Known
		now := 0.0
		for range 30 {
			now += r.Float64() * 20
			for range r.IntN(6) {
				i := r.IntN(40)
				var is *nodes.Pod
				if pods[i] == nil {
					is = by(owners[r.IntN(len(owners))], []string{"shop", "depot"}[r.IntN(2)], now)[0]
					is.Name = fmt.Sprint("p", i)
				}
				x.Pod(pods[i], is)
				pods[i] = is
			}
			text := within(nodes.WaitingIn(x), slices.Values(workloads), 120+r.IntN(500)).Encode()
			l, err := Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			known = Read(l, known, at(now))
			for _, of := range workloads {
				threshold := time.Duration(r.IntN(300)) * time.Second
				later := at(now + r.Float64()*100)
				n, err := known.Unschedulable(of, threshold, later)
				is := x.Unschedulable(of, threshold, later)
				if n > is || err != nil && !errors.Is(err, ErrUnreported) {
					t.Fatalf("seed %d: %d of %s in %s are told to wait for %s (%v), %d do: %s", seed, n, of.Name, of.Namespace, threshold, err, is, text)
				}
				if n > 0 {
					counted++
				}
				if n == is && n > 0 {
					same++
				}
			}
		}
	}
	if counted < 1000 || same < counted/2 {
		t.Errorf("something was told to wait %d times, and all that does %d times", counted, same)
	}
}

func TestWhatNoListSays(t *testing.T) {
	one := func(rows string) string {
		return `{"version":1,"workloads":[{"kind":"Deployment","name":"web","rows":` + rows + `}]}`
	}
	many := func(n int, of string) string { return strings.TrimSuffix(strings.Repeat(of+",", n), ",") }
	cases := map[string]struct{ text, says string }{
		"nothing":                 {"", "unexpected end of JSON input"},
		"no text of this kind":    {"x", "invalid character"},
		"a field twice":           {`{"version":1,"version":1}`, "duplicate field"},
		"other letters":           {`{"Version":1}`, "unknown field"},
		"two":                     {`{"version":1}{}`, "after top-level value"},
		"too long":                {strings.Repeat(" ", MostBytes) + `{"version":1}`, "may have 16384"},
		"of another version":      {`{"version":2}`, "its version is 2"},
		"something unknown":       {`{"version":1,"pods":[]}`, "unknown field"},
		"less than none left out": {`{"version":1,"leftOut":-1}`, "leftOut"},
		"too many workloads":      {`{"version":1,"workloads":[` + many(mostWorkloads+1, `{}`) + `]}`, "256 is the most"},
		"a workload twice": {`{"version":1,"workloads":[{"kind":"D","name":"a","rows":[[1,1]]},{"kind":"D","name":"a","rows":[[1,1]]}]}`,
			"workloads[1]: it tells of it twice"},
		"a workload without a name": {`{"version":1,"workloads":[{"kind":"D","rows":[[1,1]]}]}`, "no kind or no name"},
		"no rows":                   {one("[]"), "0 rows"},
		"too many rows":             {one("[" + many(mostRows+1, "[1,1]") + "]"), "9 rows"},
		"a row of one number":       {one("[[1]]"), "a row has 1 numbers"},
		"a row of three":            {one("[[1,2,3]]"), "a row has 3 numbers"},
		"rows that go back":         {one("[[2,1],[1,1]]"), "since 1, after 2"},
		"a time before all":         {one("[[-1,1]]"), "since -1"},
		"a time after all":          {one("[[9223372036854775807,1]]"), "since 9223372036854775807"},
		"no replicas":               {one("[[1,0]]"), "0 replicas"},
		"less than none":            {one("[[1,-5]]"), "-5 replicas"},
		"more than there can be":    {one("[[1,2147483648]]"), "2147483648 replicas"},
		"no number":                 {one("[[1,1e99]]"), "cannot unmarshal"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(tc.text))
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("= %v, want %q", err, tc.says)
			}
		})
	}
}

// FuzzDecode reads what anybody may have written, and asks it.
func FuzzDecode(f *testing.F) {
	f.Add(listOf(by(set("web", "h1"), "shop", 0, 30), web("shop")).Encode())
	f.Add([]byte(`{"version":1,"workloads":[{"kind":"D","name":"a","rows":[[1,2147483647],[1099511627776,2147483647]]}],"leftOut":3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Decode(text)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		known := Read(l, Read(l, nil, at(-3600)), start)
		for i := range l.Workloads {
			w := &l.Workloads[i]
			n, err := known.Unschedulable(ref(w.Group+"/v1", w.Kind, w.Namespace, w.Name), time.Minute, start)
			if n < 0 || err != nil && !errors.Is(err, ErrUnreported) {
				t.Fatalf("%d wait: %v", n, err)
			}
		}
		if again, err := Decode(l.Encode()); err == nil && string(again.Encode()) != string(l.Encode()) {
			t.Error("it is another one when it is read again")
		}
	})
}
