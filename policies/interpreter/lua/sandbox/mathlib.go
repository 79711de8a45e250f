package sandbox

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// mathFunctions are the functions of math, without chance: an object must give
// the same answer in each call, or its status would be written again and again.
// math.random draws from a sequence that restarts with each call.
var mathFunctions = map[string]lua.LGFunction{
	"abs": of1(math.Abs), "acos": of1(math.Acos), "asin": of1(math.Asin), "atan": of1(math.Atan), "atan2": of2(math.Atan2),
	"ceil": of1(math.Ceil), "cos": of1(math.Cos), "cosh": of1(math.Cosh), "exp": of1(math.Exp), "floor": of1(math.Floor),
	"deg": of1(func(x float64) float64 { return x * 180 / math.Pi }), "rad": of1(func(x float64) float64 { return x * math.Pi / 180 }),
	"fmod": of2(math.Mod), "log": of1(math.Log), "log10": of1(math.Log10), "mod": of2(modulo), "pow": of2(math.Pow),
	"sin": of1(math.Sin), "sinh": of1(math.Sinh), "sqrt": of1(math.Sqrt), "tan": of1(math.Tan), "tanh": of1(math.Tanh),
	"max": ofAll(math.Max), "min": ofAll(math.Min),
	"frexp": mathFrexp, "ldexp": mathLdexp, "modf": mathModf, "random": mathRandom, "randomseed": func(*lua.LState) int { return 0 },
}

// numeric returns argument n as a number; text is parsed.
func numeric(l *lua.LState, n int) lua.LNumber {
	if text, ok := l.Get(n).(lua.LString); ok {
		of(l).pay(len(text)/8, 4*len(text))
	}
	return l.CheckNumber(n)
}

func of1(f func(float64) float64) lua.LGFunction {
	return func(l *lua.LState) int {
		of(l).pay(8, numberBytes)
		l.Push(lua.LNumber(f(float64(numeric(l, 1)))))
		return 1
	}
}

func of2(f func(a, b float64) float64) lua.LGFunction {
	return func(l *lua.LState) int {
		of(l).pay(256, numberBytes)
		l.Push(lua.LNumber(f(float64(numeric(l, 1)), float64(numeric(l, 2)))))
		return 1
	}
}

func ofAll(f func(a, b float64) float64) lua.LGFunction {
	return func(l *lua.LState) int {
		of(l).pay(l.GetTop(), numberBytes)
		x := float64(numeric(l, 1))
		for i := 2; i <= l.GetTop(); i++ {
			x = f(x, float64(numeric(l, i)))
		}
		l.Push(lua.LNumber(x))
		return 1
	}
}

func modulo(a, b float64) float64 {
	x := math.Mod(a, b)
	if x*b < 0 {
		x += b
	}
	return x
}

func mathFrexp(l *lua.LState) int {
	fraction, exponent := math.Frexp(float64(numeric(l, 1)))
	l.Push(lua.LNumber(fraction))
	l.Push(lua.LNumber(exponent))
	return 2
}

func mathLdexp(l *lua.LState) int {
	l.Push(lua.LNumber(math.Ldexp(float64(numeric(l, 1)), l.CheckInt(2))))
	return 1
}

func mathModf(l *lua.LState) int {
	whole, fraction := math.Modf(float64(numeric(l, 1)))
	l.Push(lua.LNumber(whole))
	l.Push(lua.LNumber(fraction))
	return 2
}

func mathRandom(l *lua.LState) int {
	v := of(l)
	v.pay(4, numberBytes)
	v.drawn = v.drawn*6364136223846793005 + 1442695040888963407
	x := float64(v.drawn>>11) / (1 << 53)
	low, high := 1.0, 0.0
	switch l.GetTop() {
	case 0:
		l.Push(lua.LNumber(x))
		return 1
	case 1:
		high = float64(numeric(l, 1))
	default:
		low, high = float64(numeric(l, 1)), float64(numeric(l, 2))
	}
	if !(low <= high) {
		l.ArgError(l.GetTop(), "interval is empty")
	}
	l.Push(lua.LNumber(math.Floor(low + x*(high-low+1))))
	return 1
}
