package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

const mebi = 1 << 20

func TestJudge(t *testing.T) {
	cases := map[string]struct {
		room Space
		was  Level
		want Level
	}{
		"there is room":                                    {room: Space{Bytes: 100 * mebi, Inodes: 1000}, want: Plenty},
		"there is just room":                               {room: Space{Bytes: 64 * mebi, Inodes: 256}, want: Plenty},
		"there is just no room":                            {room: Space{Bytes: 64*mebi - 1, Inodes: 256}, want: Low},
		"no more files can be made":                        {room: Space{Bytes: 100 * mebi, Inodes: 255}, want: Low},
		"a file system that does not count files":          {room: Space{Bytes: 100 * mebi, Inodes: -1}, want: Plenty},
		"what was low is well only a good deal later":      {room: Space{Bytes: 79 * mebi, Inodes: 1000}, was: Low, want: Low},
		"and then it is":                                   {room: Space{Bytes: 80 * mebi, Inodes: 1000}, was: Low, want: Plenty},
		"files, too":                                       {room: Space{Bytes: 100 * mebi, Inodes: 300}, was: Exhausted, want: Low},
		"hardly anything is left":                          {room: Space{Bytes: 16*mebi - 1, Inodes: 1000}, was: Low, want: Exhausted},
		"hardly a file can be made":                        {room: Space{Bytes: 100 * mebi, Inodes: 15}, want: Exhausted},
		"nothing can be written, however much room it has": {room: Space{Bytes: 100 * mebi, Inodes: 1000, ReadOnly: true}, want: Exhausted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := judge(tc.room, 64*mebi, tc.was); got != tc.want {
				t.Errorf("level %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWhetherThereIsRoomForAFirstStart(t *testing.T) {
	cases := map[string]struct {
		room    Space
		minimum int64
		want    string
	}{
		"there is room":                        {room: Space{Bytes: 148 * mebi, Inodes: 1000}, minimum: 128 * mebi},
		"the start would take what is to stay": {room: Space{Bytes: 148*mebi - 1, Inodes: 1000}, minimum: 128 * mebi, want: "no space left on device: 147Mi is free, and a first start needs 148Mi"},
		"there is hardly any":                  {room: Space{Bytes: 19 * mebi, Inodes: -1}, minimum: 128 * mebi, want: "no space left on device: 19Mi is free, and a first start needs 148Mi"},
		"no more files can be made":            {room: Space{Bytes: 500 * mebi, Inodes: 100}, minimum: 128 * mebi, want: "no space left on device: 100 more files can be made, and a first start needs 256"},
		"nobody watches, and there is room":    {room: Space{Bytes: 20 * mebi, Inodes: -1}},
		"nobody watches, and there is none":    {room: Space{Bytes: 19 * mebi, Inodes: -1}, want: "no space left on device: 19Mi is free, and a first start needs 20Mi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.room.first(tc.minimum)
			if got := describe(err); got != tc.want || (err != nil) != errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func describe(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDescribe(t *testing.T) {
	cases := map[string]Space{
		"its disk has 12Mi free, and it needs 80Mi":     {Bytes: 12*mebi + 17, Inodes: 1000},
		"its disk has 0 free, and it needs 80Mi":        {Bytes: 0, Inodes: 0},
		"its disk takes 3 more files, and it needs 320": {Bytes: 100 * mebi, Inodes: 3},
		"its disk is mounted read-only":                 {Bytes: 0, ReadOnly: true},
	}
	for want, room := range cases {
		if got := room.describe(64 * mebi); got != want {
			t.Errorf("%+v: %q, want %q", room, got, want)
		}
	}
}

// volume is a file system that holds what the test says, and the reserve.
type volume struct {
	mu   sync.Mutex
	dir  string
	room Space
}

func (v *volume) set(room Space) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.room = room
}

func (v *volume) read(string) (Space, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	room := v.room
	if info, err := os.Stat(filepath.Join(v.dir, reserveFile)); err == nil {
		room.Bytes -= info.Size()
	}
	return room, nil
}

// A disk that runs full and is cleared: what may be stored at each step, what is
// held in reserve, and one line in the log for each turn.
func TestADiskRunsFullAndIsCleared(t *testing.T) {
	var lines []string
	v := &volume{dir: t.TempDir()}
	full, ticks := false, clocktesting.NewFakeClock(time.Unix(0, 0))
	relieved := make(chan struct{}, 100)
	d := New(Options{
		Dir: v.dir, Minimum: 8 * mebi, Statfs: v.read, Clock: ticks,
		Relieve: func(context.Context) (bool, error) { relieved <- struct{}{}; return full, nil },
		Log:     funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
	})
	reserved := func() int64 {
		info, err := os.Stat(d.reserve())
		if err != nil {
			return 0
		}
		return info.Size()
	}
	type seen struct {
		Level    Level
		Text     string
		Reserved int64
		Lines    int
	}
	steps := []struct {
		name string
		room Space
		full bool
		want seen
	}{
		{name: "there is room, and some is held back", room: Space{Bytes: 100 * mebi, Inodes: -1}, want: seen{Plenty, "", 4 * mebi, 0}},
		{name: "it gets low", room: Space{Bytes: 10 * mebi, Inodes: -1}, want: seen{Low, Notice + ": its disk has 6Mi free, and it needs 10Mi", 4 * mebi, 1}},
		{name: "it runs out: the reserve gives way", room: Space{Bytes: 4 * mebi, Inodes: -1}, want: seen{Low, Notice + ": its disk has 4Mi free, and it needs 10Mi", 0, 1}},
		{name: "that is taken, too", room: Space{Bytes: 0, Inodes: -1}, want: seen{Exhausted, Notice + ": its disk has 0 free, and it needs 10Mi", 0, 2}},
		{name: "somebody clears some", room: Space{Bytes: 9 * mebi, Inodes: -1}, want: seen{Low, Notice + ": its disk has 9Mi free, and it needs 10Mi", 0, 2}},
		{name: "there is room, but not for a reserve", room: Space{Bytes: 11 * mebi, Inodes: -1}, want: seen{Plenty, "", 0, 3}},
		{name: "there is room for all", room: Space{Bytes: 100 * mebi, Inodes: -1}, want: seen{Plenty, "", 4 * mebi, 3}},
		{name: "the store is at its own limit", room: Space{Bytes: 100 * mebi, Inodes: -1}, full: true, want: seen{Low, Notice + ": its store has reached its limit", 4 * mebi, 4}},
		{name: "and is no longer", room: Space{Bytes: 100 * mebi, Inodes: -1}, want: seen{Plenty, "", 4 * mebi, 5}},
		{name: "it is mounted anew for reading alone", room: Space{Bytes: 100 * mebi, Inodes: -1, ReadOnly: true}, want: seen{Exhausted, Notice + ": its disk is mounted read-only", 4 * mebi, 6}},
	}
	for _, step := range steps {
		v.set(step.room)
		full = step.full
		ctx, stop := context.WithCancel(t.Context())
		stop() // one look
		if err := d.Run(ctx); err != nil {
			t.Fatal(err)
		}
		state := d.State()
		if diff := cmp.Diff(step.want, seen{state.Level, state.Text, reserved(), len(lines)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s\nlog:\n%s", step.name, diff, strings.Join(lines, "\n"))
		}
	}
	if len(relieved) != len(steps) {
		t.Errorf("the store was asked %d times, want %d", len(relieved), len(steps))
	}
}

func TestWhatCannotBeLookedAtStaysAsItWas(t *testing.T) {
	d := New(Options{Minimum: 1, Statfs: func(string) (Space, error) { return Space{}, errors.New("gone") }})
	if got := d.State(); got != (State{}) {
		t.Errorf("state %+v", got)
	}
	var none *Disk
	if got := none.State(); got != (State{}) {
		t.Errorf("state of none %+v", got)
	}
}

func TestExplain(t *testing.T) {
	boom := errors.New("it does not come up")
	for want, room := range map[string]Space{
		"it does not come up": {Bytes: 8 * mebi, Inodes: -1},
		"data directory /hub: no space left on device: it does not come up": {Bytes: 7 * mebi, Inodes: -1},
	} {
		d := New(Options{Dir: "/hub", Minimum: 8 * mebi, Statfs: func(string) (Space, error) { return room, nil }})
		if got := d.Explain(boom); got.Error() != want || !errors.Is(got, boom) || d.Explain(nil) != nil {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

func TestRead(t *testing.T) {
	room, err := Statfs(t.TempDir())
	if err != nil || room.Bytes <= 0 || room.ReadOnly {
		t.Errorf("room of a folder that was written to: %+v, %v", room, err)
	}
	if _, err := Statfs(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there has room")
	}
}
