package sandbox

import (
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// osFunctions are the functions of os that return times, all in UTC.
var osFunctions = map[string]lua.LGFunction{
	"clock": osClock, "date": osDate, "difftime": osDifftime, "time": osTime,
}

// now returns when the call began, so that time stands still while a script runs;
// without a clock, the beginning of 1970.
func (v *vm) now() time.Time {
	if v.opts.Now == nil {
		return time.Unix(0, 0).UTC()
	}
	return v.started.UTC()
}

func osClock(l *lua.LState) int {
	l.Push(lua.LNumber(float64(of(l).steps) / 1e8))
	return 1
}

func osDifftime(l *lua.LState) int {
	l.Push(numeric(l, 1) - l.OptNumber(2, 0))
	return 1
}

func osTime(l *lua.LState) int {
	if l.Get(1) == lua.LNil {
		l.Push(lua.LNumber(of(l).now().Unix()))
		return 1
	}
	t := of(l).table(1)
	field := func(name string, otherwise int) int {
		switch x := t.RawGetString(name).(type) {
		case lua.LNumber:
			return int(x)
		case lua.LString:
			if n, ok := parseNumber(strings.TrimSpace(string(x)), 10).(lua.LNumber); ok {
				return int(n)
			}
		}
		if otherwise < 0 {
			l.RaiseError("field '%s' missing in date table", name)
		}
		return otherwise
	}
	at := time.Date(field("year", -1), time.Month(field("month", -1)), field("day", -1),
		field("hour", 12), field("min", 0), field("sec", 0), 0, time.UTC)
	l.Push(lua.LNumber(at.Unix()))
	return 1
}

func osDate(l *lua.LState) int {
	v := of(l)
	format, at := l.OptString(1, "%c"), v.now()
	if l.Get(2) != lua.LNil {
		at = time.Unix(int64(numeric(l, 2)), 0).UTC()
	}
	format = strings.TrimPrefix(format, "!")
	v.pay(len(format), 64*len(format))
	if strings.HasPrefix(format, "*t") {
		l.Push(dateTable(v, at))
		return 1
	}
	var out strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			out.WriteByte(format[i])
			continue
		}
		i++
		out.WriteString(datePart(format[i], at))
	}
	l.Push(lua.LString(out.String()))
	return 1
}

func dateTable(v *vm, at time.Time) *lua.LTable {
	v.pay(10, tableBytes+firstEntry+10*entryBytes)
	t := &lua.LTable{Metatable: lua.LNil}
	for _, f := range []struct {
		name string
		n    int
	}{
		{"year", at.Year()}, {"month", int(at.Month())}, {"day", at.Day()}, {"hour", at.Hour()}, {"min", at.Minute()},
		{"sec", at.Second()}, {"wday", int(at.Weekday()) + 1}, {"yday", at.YearDay()},
	} {
		t.RawSetString(f.name, lua.LNumber(f.n))
	}
	t.RawSetString("isdst", lua.LFalse)
	return t
}

// dateLayouts are Go's layouts for the conversions of os.date.
var dateLayouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "02 Jan 06 15:04 MST", 'd': "02", 'D': "01/02/06",
	'F': "2006-01-02", 'H': "15", 'I': "03", 'm': "01", 'M': "04", 'p': "PM", 'S': "05", 'T': "15:04:05",
	'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
}

func datePart(c byte, at time.Time) string {
	if layout, ok := dateLayouts[c]; ok {
		return at.Format(layout)
	}
	switch c {
	case '%':
		return "%"
	case 'w':
		return strconv.Itoa(int(at.Weekday()))
	case 'j':
		return at.Format("002")
	case 's':
		return strconv.FormatInt(at.Unix(), 10)
	default:
		return "%" + string(rune(c))
	}
}
