-- wrk runs this script. Arguments: a file with one request per line (method, path, API key and body, separated by tabs), and the first
-- number for requests that must not be repeated: bodies contain "@@@@@@" in place of these numbers. One that begins with "hex:" is protobuf.
local requests = {}
local at = 0
local number = 0
local digits = "0123456789abcdefghijklmnopqrstuvwxyz"

local function fresh()
  number = number + 1
  local left, text = number, ""
  for _ = 1, 6 do
    local digit = left % 36
    text = digits:sub(digit + 1, digit + 1) .. text
    left = (left - digit) / 36
  end
  return text
end

local function partsOf(body)
  local parts, start = {}, 1
  while true do
    local from, to = body:find("@@@@@@", start, true)
    if not from then break end
    parts[#parts + 1] = body:sub(start, from - 1)
    start = to + 1
  end
  parts[#parts + 1] = body:sub(start)
  return parts
end

function init(args)
  number = tonumber(args[2] or 0)
  for line in io.lines(args[1]) do
    local method, path, key, body = line:match("^(%S+)\t(%S+)\t(%S+)\t?(.*)$")
    if body == "" then body = nil end
    local headers = { ["Authorization"] = "Bearer " .. key }
    if body and body:sub(1, 4) == "hex:" then
      headers["Content-Type"] = "application/x-protobuf"
      local bytes = body:sub(5):gsub("..", function(pair) return string.char(tonumber(pair, 16)) end)
      body = bytes
    else
      headers["Content-Type"] = body and "application/json" or nil
    end
    local parts = partsOf(wrk.format(method, path, headers, body))
    requests[#requests + 1] = #parts == 1 and parts[1] or parts
  end
end

function request()
  at = at % #requests + 1
  local one = requests[at]
  if type(one) == "string" then return one end
  return table.concat(one, fresh())
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"failed":%d,"p50Us":%d,"p99Us":%d}\n',
    summary.requests, summary.duration / 1e6,
    errors.status + errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
